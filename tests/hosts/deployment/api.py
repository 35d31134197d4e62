"""The admin's client of the hosts' API server, and of anyone's by token."""

import base64
import ssl
from pathlib import Path

import urllib3
import yaml

from tools.testbed.shared.api import Api


class AdminApi(Api):
    """By the client certificate of a kubeadm kubeconfig, whose parts are put into `folder`."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self.ca = folder / "ca.crt"
        certificate, key = folder / "admin.crt", folder / "admin.key"
        for path, data in (
            (self.ca, cluster["certificate-authority-data"]),
            (certificate, user["client-certificate-data"]),
            (key, user["client-key-data"]),
        ):
            path.write_bytes(base64.b64decode(data))
        super().__init__(cluster["server"], ca=self.ca, token="")
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(certificate, key)
        self._pool = urllib3.PoolManager(
            maxsize=8, ssl_context=context, retries=False, timeout=urllib3.Timeout(total=15)
        )
        key.unlink()

    def by_token(self, token: str) -> Api:
        return Api(self.server, ca=self.ca, token=token)
