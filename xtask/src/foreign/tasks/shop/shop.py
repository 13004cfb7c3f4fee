# The program of main.rs in Python, for memray: a catalogue, a feed that is parsed, an audit trail that grows, and sessions that
# are kept for ever.
import sys
import time

CATALOGUE = {}
AUDIT = []
SESSIONS = []


def load_catalogue():
    for n in range(20_000):
        CATALOGUE[n] = (f"product number {n}", n)


def parse_feed():
    feed = [bytes(1 << 20) for _ in range(64)]
    return sum(map(len, feed))


def audit(rounds):
    for who in range(rounds):
        AUDIT.append([who] * 16)


def open_session(user):
    SESSIONS.append(bytearray(120))


def print_prices():
    return sum(len(f"{name}: {price}") for name, price in CATALOGUE.values())


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    begin = time.monotonic()
    load_catalogue()
    total = parse_feed()
    for user in range(1000):
        open_session(user)
    audit(20_000)
    for _ in range(10):
        total += print_prices()
    while time.monotonic() - begin < seconds:
        audit(2_000)
        open_session(0)
        time.sleep(0.05)
    print(total)


main()
