"""Creates the container `fleet` of a local azurite, and puts the files of a folder below `data`."""

import os
import sys

from azure.storage.blob import BlobServiceClient

PORT, FOLDER = sys.argv[1:]
# The well-known account of every azurite.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

service = BlobServiceClient(f"http://127.0.0.1:{PORT}/{ACCOUNT}", credential=KEY)
container = service.create_container("fleet")
for place, _, names in os.walk(FOLDER):
    for name in names:
        path = os.path.join(place, name)
        with open(path, "rb") as file:
            container.upload_blob("data/" + os.path.relpath(path, FOLDER), file)
