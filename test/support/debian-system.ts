/** This machine's Debian with nothing of it changed: an overlay in a mount and network namespace of its own. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const exec = promisify(execFile);

const SETUP = `set -e
cd "$1"
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" root
mount -t tmpfs tmpfs root/run
mount -t tmpfs tmpfs root/tmp
mount -t proc proc root/proc
mount --bind /dev root/dev
mount --bind "$2" root/mnt
ip link set lo up
echo ready
exec sleep infinity`;

/** What the package manager and the tools for users write for themselves at every call. */
const OF_OTHERS =
  /^\.\/(var\/(lib\/dpkg|log|cache)\/|etc\/\.pwd\.lock$|etc\/(passwd|group|shadow|gshadow)-$)/;

export interface DebianSystem extends AsyncDisposable {
  /** What to put before a command. */
  readonly prefix: readonly string[];
  /** Runs a line of shell as root inside and answers with what it printed; throws where it fails. */
  sh(line: string): Promise<string>;
  /** Files that are there and were not, have other contents, or are gone; `./`-relative to the root. */
  changes(): Promise<readonly string[]>;
}

/** `folder` is at /mnt inside. There is no service manager; /run and /tmp are empty. */
export async function openDebianSystem(folder: string): Promise<DebianSystem> {
  const base = mkdtempSync(join(tmpdir(), "weir-debian-"));
  const holder = spawn("unshare", ["-m", "-n", "sh", "-c", SETUP, "sh", base, folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(holder, "exit");
  const [said] = (await Promise.race([once(holder.stdout, "data"), ended])) as [unknown];
  if (!String(said).startsWith("ready")) throw new Error("the overlay of this system could not be made");
  const enter = ["nsenter", "-t", String(holder.pid), "-m", "-n"];
  const prefix = [...enter, "chroot", join(base, "root")];
  const run = async ([program, ...args]: readonly string[]) =>
    (
      await exec(program as string, args, {
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8" },
      })
    ).stdout;
  const compare = `cd "${base}/upper"
find . -type f -o -type l | while read -r path; do
  if [ -L "$path" ]; then [ "$(readlink "$path")" = "$(readlink "/$path")" ] || echo "$path"
  else cmp -s "$path" "/$path" || echo "$path"; fi
done
find . -type c
find . -mindepth 1 -type d | while read -r path; do [ -d "/$path" ] || echo "$path/"; done`;
  return {
    prefix,
    sh: (line) => run([...prefix, "sh", "-c", line]),
    async changes() {
      const lines = (await run([...enter, "sh", "-c", compare])).split("\n");
      return lines.filter((line) => line !== "" && !OF_OTHERS.test(line));
    },
    async [Symbol.asyncDispose]() {
      holder.kill("SIGKILL");
      await ended;
      rmdirSync(base);
    },
  };
}
