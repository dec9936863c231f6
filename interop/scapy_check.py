#!/usr/bin/env python3
"""lastmile's STAMP packets read by scapy, and scapy's packets read by lastmile.

    python3 -m venv interop/.venv && interop/.venv/bin/pip install -r interop/requirements.txt
    interop/.venv/bin/python interop/scapy_check.py

scapy knows the unauthenticated base packets and the framing of TLVs (contrib/stamp.py), not the contents of TLVs
and not the authenticated mode; of an authenticated packet it checks the framing of the TLVs alone, and Python's own
hmac module the two HMACs.
"""

import hashlib
import hmac
import pathlib
import subprocess
import sys

from scapy.contrib.stamp import (
    ErrorEstimate,
    STAMPSessionReflectorTestUnauthenticated,
    STAMPSessionSenderTestUnauthenticated,
    STAMPTestTLV,
)
from scapy.packet import Padding

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ["cargo", "run", "--quiet", "--package", "lastmile", "--example", "stamp_vectors"]
KEY = bytes(range(32))
KINDS = [244, 4, 10, 12, 243, 245, 8, 1]
failures = []


def check(name, what, got, wanted):
    if got != wanted:
        failures.append(f"{name}: {what}: got {got!r}, wanted {wanted!r}")


def lastmile(*arguments, stdin=None):
    command = EXAMPLE + (["--", *arguments] if arguments else [])
    done = subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return [line.split() for line in done.stdout.splitlines()]


def tag(*parts):
    return hmac.new(KEY, b"".join(parts), hashlib.sha256).digest()[:16]


def read_tlvs(name, area, base):
    """The TLVs of an area, as scapy frames them behind an empty unauthenticated base packet."""
    tlvs = STAMPSessionSenderTestUnauthenticated(bytes(44) + area).tlv_objects
    check(name, "every octet is a TLV's", b"".join(bytes(tlv) for tlv in tlvs), area)
    check(name, "TLV types", [tlv.type for tlv in tlvs], [] if name.startswith("bare") else KINDS)
    if tlvs:
        before = b"".join(bytes(tlv) for tlv in tlvs[:6])
        check(name, "TLV HMAC", tlvs[6].value, tag(base[:4], before))
        # As numbers: scapy 2.8.0 names the bits from the wrong end, so that U prints as R.
        wanted = [0 if name.startswith("reflected") and kind != 243 else 0x80 for kind in KINDS]
        check(name, "TLV flags", [int(tlv.flags) for tlv in tlvs], wanted)
    return tlvs


def they_read_ours():
    count = 0
    for name, role, mode, text in lastmile():
        wire = bytes.fromhex(text)
        base, area = (wire[:44], wire[44:]) if mode == "open" else (wire[:112], wire[112:])
        read_tlvs(name, area, base)
        count += 1
        if mode == "auth":
            check(name, "base HMAC", base[96:], tag(base[:96]))
            continue
        reflected = role == "reflector"
        kind = STAMPSessionReflectorTestUnauthenticated if reflected else STAMPSessionSenderTestUnauthenticated
        packet = kind(wire)
        check(name, "nothing left over", Padding in packet, False)
        check(name, "writes the same octets", bytes(packet).hex(), text)
        check(name, "ssid", packet.ssid, 0x0506)
        check(name, "sequence", packet.seq, 1 if reflected else 0x01020304)
        check(name, "S and Z", (packet.err_estimate.S, packet.err_estimate.Z), (1, 0))
        error = packet.err_estimate.multiplier * 2.0 ** (packet.err_estimate.scale - 32)
        check(name, "error estimate", 0.001 <= error <= 0.001008, True)
        # 2025-11-21 09:00:00.123456789 UTC, in seconds since 1900.
        sent = packet.ts_sender if reflected else packet.ts
        check(name, "timestamp", abs(float(sent) - (1763715600.123456789 + 2208988800)) < 1e-6, True)
        if reflected:
            check(name, "sender's sequence", packet.seq_sender, 0x01020304)
            check(name, "ttl", packet.ttl_sender, 64)
            check(name, "reserved", (packet.mbz1, packet.mbz2), (0, 0))
    check("vectors", "number", count, 6)
    return count


def tlv(kind, value, flags=0x80):
    return STAMPTestTLV(flags=flags, type=kind, len=len(value), value=value)


def we_read_theirs():
    estimate = ErrorEstimate(S=1, Z=0, scale=5, multiplier=77)
    tlvs = [tlv(4, bytes.fromhex("b8d1c000")), tlv(200, b"unknown"), tlv(1, bytes(30))]
    sender = STAMPSessionSenderTestUnauthenticated(
        seq=77, ts=3972704400.5, err_estimate=estimate, ssid=99, tlv_objects=tlvs
    )
    reflector = STAMPSessionReflectorTestUnauthenticated(
        seq=78,
        ts=3972704402.25,
        err_estimate=estimate,
        ssid=99,
        ts_rx=3972704401.75,
        seq_sender=77,
        ts_sender=3972704400.5,
        err_estimate_sender=ErrorEstimate(S=0, Z=0, scale=1, multiplier=2),
        ttl_sender=63,
        tlv_objects=[tlv(4, bytes.fromhex("b8d1c000"), 0), tlv(200, b"unknown", 0x80), tlv(1, bytes(30), 0x40)],
    )
    lines = [f"sender sender open {bytes(sender).hex()}", f"reflector reflector open {bytes(reflector).hex()}"]
    got = {name: values for name, *values in lastmile("decode", stdin="\n".join(lines) + "\n")}
    content = ["dscp1=46", "dscp2=13", "ecn=0"]
    area = lambda a, b, c: [  # noqa: E731
        f"tlv=4:{a}:b8d1c000", *content, f"tlv=200:{b}:{b'unknown'.hex()}", f"tlv=1:{c}:{'00' * 30}"
    ]
    ntp = lambda seconds: hex(int(seconds * 2**32))  # noqa: E731
    wanted = ["seq=77", f"ts={ntp(3972704400.5)}", "err=0x854d", "ssid=99", "tlv_hmac=Absent"]
    check("scapy sender", "values", got.get("sender"), wanted + area("80", "80", "80"))
    wanted = ["seq=78", f"ts={ntp(3972704402.25)}", "err=0x854d", "ssid=99", f"rx={ntp(3972704401.75)}", "sseq=77"]
    wanted += [f"sts={ntp(3972704400.5)}", "serr=0x102", "ttl=63", "tlv_hmac=Absent"]
    check("scapy reflector", "values", got.get("reflector"), wanted + area("00", "80", "40"))
    return len(lines)


if __name__ == "__main__":
    read = they_read_ours()
    written = we_read_theirs()
    for failure in failures:
        print(failure, file=sys.stderr)
    if failures:
        sys.exit(1)
    print(f"scapy reads {read} packets of lastmile, lastmile reads {written} of scapy")
