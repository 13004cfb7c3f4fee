"""A store with S3's interface that can be stopped and started, and keeps its contents.

Lines of standard input are commands: `stop`, `start`, `load FOLDER`. Each is answered by a line.
"""

import os
import sys

import boto3
from moto.server import ThreadedMotoServer

PORT = int(sys.argv[1])


def start():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=PORT, verbose=False)
    server.start()
    return server


def client():
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{PORT}",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        region_name="us-east-1",
    )


def load(folder):
    s3 = client()
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            s3.upload_file(path, "fleet", "data/" + os.path.relpath(path, folder))


server = start()
client().create_bucket(Bucket="fleet")
print("ready", flush=True)
for line in sys.stdin:
    words = line.split(None, 1)
    if words[0] == "stop":
        server.stop()
        print("stopped", flush=True)
    elif words[0] == "start":
        server = start()
        print("started", flush=True)
    elif words[0] == "load":
        load(words[1].strip())
        print("loaded", flush=True)
