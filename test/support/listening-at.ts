import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The state of a listening socket in /proc/net/tcp (proc(5)). */
const LISTENING = "0A";

/**
 * Whether that process itself listens at a TCP port. Whether a connection is taken says less: a port that one program gives
 * up may be another's a moment later. Linux only.
 */
export function listensAt(pid: number, port: number): boolean {
  const sockets = new Set(descriptorsOf(pid));
  return ["tcp", "tcp6"].some((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, "latin1")
      .split("\n")
      .slice(1)
      .map((row) => row.trim().split(/\s+/))
      .some(([, local = "", , state, , , , , , inode]) => {
        const isThere = state === LISTENING && Number.parseInt(local.split(":")[1] ?? "", 16) === port;
        return isThere && sockets.has(`socket:[${inode}]`);
      }),
  );
}

function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return []; // closed meanwhile
    }
  });
}
