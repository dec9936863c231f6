#!/bin/sh
# Video between a lastmile with the feature `video` (the first argument) and Debian's ffmpeg and GStreamer, both ways over loopback. Every
# player's pictures are compared with the originals by ffmpeg's filter ssim: above 0.99, over 40 pictures at least. Needs both programs;
# as root it installs them.
set -eu
program=$1
work=$(mktemp -d)
peer=
trap '[ -z "$peer" ] || kill "$peer" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
say() { printf '== video: %s\n' "$*"; }

command -v ffmpeg >/dev/null && command -v gst-launch-1.0 >/dev/null && gst-inspect-1.0 openh264dec >/dev/null 2>&1 ||
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ffmpeg gstreamer1.0-tools \
        gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad >/dev/null

port=18640
original=$work/original.y4m
ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=320x240:rate=30 -t 3 -pix_fmt yuv420p "$original"

# SSIM of the pictures in a file, whose format the arguments tell, with the originals, one by one from the first on.
similar() {
    ffmpeg -nostdin -hide_banner "$@" -i "$original" -f null - -lavfi \
        "[0:v]setpts=N/30/TB[a];[1:v]setpts=N/30/TB[b];[a][b]ssim=shortest=1" >"$work/ssim" 2>&1
    value=$(sed -n 's/.*SSIM.* All:\([0-9.]*\).*/\1/p' "$work/ssim")
    pictures=$(tr '\r' '\n' <"$work/ssim" | sed -n 's/^frame= *\([0-9]*\).*/\1/p' | tail -n 1)
    say "  SSIM ${value:-unknown} over ${pictures:-no} pictures"
    awk -v ssim="${value:-0}" -v pictures="${pictures:-0}" 'BEGIN { exit !(ssim > 0.99 && pictures >= 40) }' ||
        { cat "$work/ssim" "$work/log"; exit 1; }
}

# Our stream of less than the two seconds after which a sender at a fixed rate that hears nothing halves its frames: these players send their
# RTCP to another port.
ours() { "$program" stream "$original" "127.0.0.1:$port" --rate "8 Mbit/s" --seconds 1.9 "$@" >"$work/stream" 2>&1 || true; }

# Our stream in ffmpeg, which reads its description; options are those of our stream.
in_ffmpeg() {
    ours "$@" --sdp "$work/stream.sdp"
    LASTMILE_SRTP_KEY=$(sed -n 's/^a=crypto.*inline:\([^ ]*\).*/\1/p' "$work/stream.sdp" | tr -d '\r')
    [ -z "$LASTMILE_SRTP_KEY" ] || export LASTMILE_SRTP_KEY
    timeout 10 ffmpeg -nostdin -loglevel error -protocol_whitelist file,udp,rtp,srtp -i "$work/stream.sdp" -vsync 0 -frames:v 50 \
        -pix_fmt yuv420p "$work/ffmpeg.y4m" -y >"$work/log" 2>&1 &
    peer=$!
    sleep 1
    ours "$@"
    wait "$peer" || true
    peer=
    unset LASTMILE_SRTP_KEY
    similar -i "$work/ffmpeg.y4m"
}

say "ours in ffmpeg, by SRTP"
in_ffmpeg
say "ours in ffmpeg, plain"
in_ffmpeg --plain

say "ours in GStreamer, plain"
# Its y4menc pads lines: raw pictures are compared.
timeout 5 gst-launch-1.0 -q filesrc location="$work/stream.sdp" ! sdpdemux timeout=0 latency=50 ! rtph264depay ! h264parse ! openh264dec \
    ! video/x-raw,format=I420 ! filesink location="$work/gstreamer.yuv" >"$work/log" 2>&1 &
peer=$!
sleep 1.5
ours --plain
wait "$peer" || true
peer=
similar -f rawvideo -pix_fmt yuv420p -s 320x240 -r 30 -i "$work/gstreamer.yuv"

# Starts our receiver with these options; ends it.
receive() {
    "$program" receive --bind 127.0.0.1 "$@" >"$work/log" 2>&1 &
    peer=$!
    sleep 0.5
}
received() {
    sleep 0.5
    kill -INT "$peer"
    wait "$peer"
    peer=
}

say "GStreamer's here, plain"
port=$((port + 1))
receive --plain --port "$port" --output "$work/from-gstreamer.y4m"
timeout 10 gst-launch-1.0 -q filesrc location="$original" ! y4mdec ! openh264enc bitrate=8000000 gop-size=30 \
    ! rtph264pay mtu=1200 pt=96 config-interval=-1 ! identity sync=true ! udpsink host=127.0.0.1 port="$port" >/dev/null 2>&1
received
similar -i "$work/from-gstreamer.y4m"

say "GStreamer's here, by SRTP with GCM"
port=$((port + 1))
head -c 28 /dev/urandom >"$work/key"
base64 <"$work/key" >"$work/key.text"
chmod 600 "$work/key.text"
receive --key-file "$work/key.text" --port "$port" --output "$work/from-gstreamer-srtp.y4m"
timeout 10 gst-launch-1.0 -q filesrc location="$original" ! y4mdec ! openh264enc bitrate=8000000 gop-size=30 \
    ! rtph264pay mtu=1200 pt=96 config-interval=-1 \
    ! srtpenc key="$(od -An -tx1 "$work/key" | tr -d ' \n')" rtp-cipher=aes-128-gcm rtp-auth=null rtcp-cipher=aes-128-gcm rtcp-auth=null \
    ! identity sync=true ! udpsink host=127.0.0.1 port="$port" >/dev/null 2>&1
received
similar -i "$work/from-gstreamer-srtp.y4m"

# ffmpeg's stream to the port, at 8 Mbit/s, with these options for its transport.
theirs() {
    timeout 10 ffmpeg -nostdin -loglevel error -re -i "$original" -c:v libx264 -profile:v baseline -tune zerolatency -b:v 8M -g 30 \
        -f rtp "$@" >/dev/null
}

say "ffmpeg's here, plain"
port=$((port + 1))
receive --plain --port "$port" --output "$work/from-ffmpeg.y4m"
theirs "rtp://127.0.0.1:$port?pkt_size=1200"
received
similar -i "$work/from-ffmpeg.y4m"

say "ffmpeg's here, by SRTP, from its description"
port=$((port + 1))
key=$(head -c 30 /dev/urandom | base64)
by_srtp() {
    theirs "$@" -payload_type 100 -srtp_out_suite AES_CM_128_HMAC_SHA1_80 -srtp_out_params "$key" "srtp://127.0.0.1:$port?pkt_size=1200"
}
# It writes the description as it begins: once for nobody.
by_srtp -t 0.1 -sdp_file "$work/theirs.sdp"
receive --sdp "$work/theirs.sdp" --output "$work/from-ffmpeg-srtp.y4m"
by_srtp
received
similar -i "$work/from-ffmpeg-srtp.y4m"
