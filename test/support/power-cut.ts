/**
 * What an ext4 medium has when the power goes: a program writes to /mnt in a mount namespace of its own, and the image is
 * copied as it is at its end, without what the system has not written yet.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
/** The file system flushes nothing of its own accord, as others do not. */
const MAKE = `truncate -s 16M "$0/image" && mkfs.ext4 -q -F "$0/image" && mount -o loop,noauto_da_alloc "$0/image" /mnt`;
const CUT = `cp "$0/image" "$0/left" && umount /mnt && mount -o loop "$0/left" /mnt`;

/** Why there can be none; false: there can. */
export function powerCutFault(): string | false {
  const folder = mkdtempSync(join(tmpdir(), "weir-power-"));
  const tried = spawnSync("unshare", ["-m", "sh", "-ec", `${MAKE}; umount /mnt`, folder], {
    encoding: "utf8",
  });
  rmSync(folder, { recursive: true });
  return tried.status === 0
    ? false
    : `SKIP no medium of one's own (${tried.stderr?.trim() || tried.error?.message})`;
}

/** Modules as text, in the root of the checkout: `write` ends with the power, what `look` prints is the answer. */
export function afterPowerCut(write: string, look: string): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-power-"));
  // A file that is flushed takes the names of all others with it: state files are, each second.
  const flushed = `${write}\n(await import("node:fs")).writeFileSync("/mnt/flushed", "x", { flush: true });`;
  const run = (name: string) =>
    `"${process.execPath}" --disable-warning=ExperimentalWarning --input-type=module -e "$${name}"`;
  const command = `${MAKE}; ${run("WRITE")} >&2; ${CUT}; ${run("LOOK")}`;
  try {
    return execFileSync("unshare", ["-m", "sh", "-ec", command, folder], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      cwd: ROOT,
      env: { ...process.env, WRITE: flushed, LOOK: look },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
