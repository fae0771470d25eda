#!/bin/sh
# Unpacks a downloaded archive of weir after comparing its sum. It downloads nothing but what is named, changes no
# configuration, and starts nothing. docs/install.md says how to use it.
set -eu

usage() {
  cat <<END
usage: install.sh [--prefix FOLDER] [--sums FILE] ARCHIVE

ARCHIVE       weir-VERSION-PLATFORM.tar.gz: a file, or an http(s) address, fetched with curl
--prefix      where the folder weir and the command bin/weir go: /opt and /usr/local/bin as root, else ~/.local
--sums        SHA256SUMS with the sum of the archive: a file or an address; absent: beside the archive
END
}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

prefix='' sums='' archive=''
while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --sums)
      [ $# -gt 1 ] || fail "$1 needs a value"
      if [ "$1" = --prefix ]; then prefix=$2; else sums=$2; fi
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    -*) fail "unknown flag $1; install.sh --help lists them" ;;
    *) [ -z "$archive" ] && archive=$1 || fail "one archive at a time: $archive, then $1" ;;
  esac
  shift
done
[ -n "$archive" ] || { usage >&2 && exit 1; }

if [ -n "$prefix" ]; then
  home=$prefix/weir bin=$prefix/bin
elif [ "$(id -u)" = 0 ]; then
  home=/opt/weir bin=/usr/local/bin
else
  home=$HOME/.local/lib/weir bin=$HOME/.local/bin
fi
name=${archive##*/}
case $name in
  weir-*.tar.gz) ;;
  *) fail "$name is no archive of weir: weir-VERSION-PLATFORM.tar.gz" ;;
esac
case $(uname -s)-$(uname -m) in
  Linux-x86_64) platform=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  Darwin-x86_64) platform=darwin-x64 ;;
  Darwin-arm64) platform=darwin-arm64 ;;
  *) fail "there is no archive for $(uname -s) on $(uname -m)" ;;
esac
case $name in
  *-"$platform".tar.gz) ;;
  *) fail "$name is for another platform than this machine's, $platform" ;;
esac
[ -n "$sums" ] || sums=${archive%"$name"}SHA256SUMS

mkdir -p "${home%/*}" "$bin"
# Beside its place, so that it is put there in one step.
work=$(mktemp -d "${home%/*}/.weir-install-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

take() {
  case $1 in
    http://* | https://*) curl -fsSL --proto-redir '=https' --max-time 600 -o "$2" "$1" || fail "cannot fetch $1" ;;
    *) cp "$1" "$2" || fail "cannot read $1" ;;
  esac
}

take "$sums" "$work/SHA256SUMS"
take "$archive" "$work/$name"
wanted=$(awk -v name="$name" '{ file = $2; sub(/^\*/, "", file) } file == name { print $1; exit }' "$work/SHA256SUMS")
[ -n "$wanted" ] || fail "$sums has no sum of $name"
if command -v sha256sum >/dev/null; then
  found=$(sha256sum "$work/$name")
else
  found=$(shasum -a 256 "$work/$name")
fi
found=${found%% *}
[ "$found" = "$wanted" ] || fail "$name has the sum $found, and $sums says $wanted: nothing was installed"

mkdir "$work/new"
tar -xzf "$work/$name" -C "$work/new" --strip-components=1 || fail "$name cannot be unpacked: nothing was installed"
version=$("$work/new/weir" -v) || fail "the program in $name does not run on this machine: nothing was installed"
number=$(cat "$work/new/version.txt") || fail "$name has no version.txt: nothing was installed"
case $number in
  *[!A-Za-z0-9._+-]* | '' | .*) fail "version.txt in $name has no version: nothing was installed" ;;
esac
# Only what is a weir gives way. Each version has its folder, so that one that runs keeps its files.
[ ! -e "$bin/weir" ] || [ -L "$bin/weir" ] || fail "$bin/weir is there and no link: nothing was installed"
is_weir() { [ -f "$1/version.txt" ] && [ -x "$1/weir" ]; }
for path in "$home" "$home-$number"; do
  if [ -e "$path" ] || [ -L "$path" ]; then
    is_weir "$path" || fail "$path is there and is no weir: nothing was installed"
  fi
done
if [ -e "$home-$number" ]; then mv "$home-$number" "$work/same"; fi
mv "$work/new" "$home-$number" || fail "$home-$number cannot be written"
before=
[ ! -L "$home" ] || before=$(readlink "$home")
[ -L "$home" ] || [ ! -e "$home" ] || mv "$home" "$work/old" # a folder, as installers before made it
ln -s "weir-$number" "$work/link"
# In one step, where mv can: without -T it would go into the folder that the link leads to.
mv -fT "$work/link" "$home" 2>/dev/null || { rm -f "$home" && mv "$work/link" "$home"; } || fail "$home cannot be written"
# The version before stays for what runs from it; older ones go.
for path in "$home"-*; do
  case ${path##*/} in "weir-$number" | "$before") continue ;; esac
  if is_weir "$path" && [ "weir-$(cat "$path/version.txt")" = "${path##*/}" ]; then rm -rf "$path"; fi
done
ln -sf "$home/weir" "$bin/weir"
echo "installed: $version"
echo "in $home, as $bin/weir"
