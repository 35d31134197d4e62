"""The kubelet's certificates at their end, and a PCI bus that has lost a card."""

from tools.faults.fault import Fault

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
# A tree of files in the place of sysfs: what the machine has of cards is not touched. It is emptied and filled, never
# replaced, as a service has it bound.
_BUS = "/run/readygate-fault/sys/bus/pci/devices"
_NONE = f"mkdir -p {_BUS}; rm -rf {_BUS}/*"
_CARDS = (
    f"{_NONE}; for a in 0000:17:00.0 0000:65:00.0; do d={_BUS}/$a; mkdir $d; echo 0x10de > $d/vendor; "
    "echo 0x030200 > $d/class; printf '\\336\\020\\202\\046' > $d/config; done"
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
        (_NONE,),
        (_CARDS,),
        "{sysfs: /run/readygate-fault/sys, driverList: null, expected: 2}",
        ("rm -rf /run/readygate-fault",),
    ),
]
