#!/usr/bin/env bash
# Tries the products of `make deb`, `make static` and `cargo install` on root file systems with nothing else in them. As root, on Debian.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    echo "installed: skipped: $*"
    exit 0
}
((EUID == 0)) || skip "chroot needs root"
command -v debootstrap >/dev/null || skip "debootstrap is missing (apt-get install debootstrap)"

bare=$(mktemp -d)
server=
finish() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    rm -rf "$bare"
}
trap finish EXIT

# measured NAME COMMAND...: the program that the command starts simulates, serves on the loopback, and measures it.
measured() {
    local name=$1 out port
    shift
    "$@" --version
    "$@" sim path --json >"$bare/sim.json"
    cmp "$bare/sim.json" "$bare/sim.first" 2>/dev/null || {
        [[ ! -e $bare/sim.first ]] || { echo "installed: $name: the simulation differs"; return 1; }
        cp "$bare/sim.json" "$bare/sim.first"
    }
    "$@" serve --bind 127.0.0.1 --port 0 >"$bare/serve.out" &
    server=$!
    for _ in $(seq 50); do
        port=$(sed -n 's/.*127\.0\.0\.1:\([0-9]*\).*/\1/p' "$bare/serve.out" | head -1)
        [[ -z $port ]] || break
        sleep 0.1
    done
    out=$("$@" measure "127.0.0.1:$port" --json) || true
    grep -q '"capacity' <<<"$out" || { echo "installed: $name: no answer: $out"; return 1; }
    kill "$server"
    wait "$server" 2>/dev/null || true
    server=
    echo "installed: $name: ok"
}

# Debian's essential packages alone.
debootstrap --variant=minbase stable "$bare/debian" >"$bare/debootstrap.log" || { tail -5 "$bare/debootstrap.log"; exit 1; }
cp target/deb/lastmile.deb "$bare/debian/"
chroot "$bare/debian" dpkg -i /lastmile.deb >/dev/null
measured "the package on Debian's minbase" chroot "$bare/debian" lastmile
for file in /usr/bin/lastmile /usr/share/man/man1/lastmile-measure.1.gz /usr/share/bash-completion/completions/lastmile \
    /usr/share/zsh/vendor-completions/_lastmile /usr/share/fish/vendor_completions.d/lastmile.fish; do
    chroot "$bare/debian" dpkg -L lastmile | grep -qx "$file" || { echo "installed: the package has no $file"; exit 1; }
done
chroot "$bare/debian" dpkg -r lastmile >/dev/null

# A folder with nothing but the program.
mkdir "$bare/empty"
cp target/static/lastmile "$bare/empty/"
measured "the static program in an empty folder" chroot "$bare/empty" /lastmile
# It looks names up with the C library's files, and says so where they are missing.
chroot "$bare/empty" /lastmile measure name.invalid 2>&1 | head -2 || true

# The program that cargo installs, on the same Debian.
cargo install --quiet --locked --path crates/lastmile-cli --root "$bare/cargo" --target-dir target
cp "$bare/cargo/bin/lastmile" "$bare/debian/usr/local/bin/"
measured "cargo install, on Debian's minbase" chroot "$bare/debian" /usr/local/bin/lastmile
