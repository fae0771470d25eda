import { spawnSync } from "node:child_process";

/** Why there is no small disk in a namespace of one's own; false: there is. */
export function tmpfsFault(): string | false {
  const tried = spawnSync("unshare", ["-rm", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"], {
    encoding: "utf8",
  });
  return tried.status === 0
    ? false
    : `SKIP full disk: no tmpfs in a namespace of one's own (${tried.stderr?.trim() || tried.error?.message})`;
}
