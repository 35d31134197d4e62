"""The kubelet's certificates at their end, and a PCI bus that has lost a card."""

from tests.faults.fault import Fault

_PKI = "/var/lib/kubelet/pki"
_ENDED = """\
-----BEGIN CERTIFICATE-----
MIIBLjCB1QIUFkof+EIVxbFgiBbJKbvCsXYmBjAwCgYIKoZIzj0EAwIwGjEYMBYG
A1UEAwwPcmVhZHlnYXRlLWZhdWx0MB4XDTI2MTEyMjIyNTQyNloXDTI2MTEyMTIy
NTQyNlowGjEYMBYGA1UEAwwPcmVhZHlnYXRlLWZhdWx0MFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEglsr7p7VKSPc+K0iOCUKYL5H8nQuVgOMx/nQHitaseLUOg2K
7mZ1nkGLKerABlP161o7QqOR0DyRqmbJMXhoXDAKBggqhkjOPQQDAgNIADBFAiBH
Q49VXMLWsfbxu0HKJqTPXORua2V0M6Dca4hvfSAWegIhAKddEZvDgckvWE78AjM1
8kWHvfVyhptDDdjMwCaZXaoP
-----END CERTIFICATE-----"""
_CARDS = (
    "cd /run && rm -rf readygate-fault && mkdir -p readygate-fault/sys/bus/pci/devices && "
    "for a in 0000:17:00.0 0000:65:00.0; do d=readygate-fault/sys/bus/pci/devices/$a; mkdir $d; "
    "echo 0x10de > $d/vendor; echo 0x030200 > $d/class; printf '\\336\\020\\202\\046' > $d/config; done"
)

FAULTS = [
    Fault(
        "certificate-ended",
        "certificates",
        "a certificate has ended; the kubelet's own is left alone",
        (f"mkdir -p {_PKI}; echo '{_ENDED}' > {_PKI}/readygate-fault.pem",),
        (f"rm -f {_PKI}/readygate-fault.pem",),
        "{files: [kubelet-client-current.pem, readygate-fault.pem]}",
    ),
    Fault(
        "gpu-missing",
        "gpu",
        "two accelerators are expected, the machine has none",
        ("rm -rf /run/readygate-fault; mkdir -p /run/readygate-fault/sys/bus/pci/devices",),
        (_CARDS,),
        "{sysfs: /run/readygate-fault/sys, driverList: null, expected: 2}",
    ),
]
