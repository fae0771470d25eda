/** From a client's socket to the program that holds it: owner and inode from the kernel, then a search in /proc. */
import { readdir, readlink, stat } from "node:fs/promises";
import { basename } from "node:path";
import type { ProcessInfo } from "#core/rule.ts";
import type { ProcessLookup, SocketQuery } from "#platform/process-lookup.ts";
import { findByDiag } from "./process-diag.ts";
import { findInTables } from "./process-socket.ts";
import type { AddressBytes, FindOwner, SocketOwner } from "./process-socket.ts";

/** Programs that were found lately are asked first: most connections come from a few. */
const RECENT_LIMIT = 32;
/** Searches run one after the other; one that would wait behind more than this answers "unknown". */
const QUEUE_LIMIT = 256;

export function openLinuxProcesses(
  addressBytes: AddressBytes,
  findOwner: FindOwner = findByDiag(addressBytes) ?? findInTables(addressBytes),
): ProcessLookup {
  let recent: readonly string[] = [];
  let queue: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  const ownerOf = async ({ network, source, peers }: SocketQuery): Promise<SocketOwner | null> => {
    for (const peer of peers) {
      if (peer.ip.includes(":") !== source.ip.includes(":")) continue;
      const owner = await findOwner(network, source, peer);
      if (owner !== null) return owner;
    }
    return null;
  };

  const search = async ({ uid, inode }: SocketOwner): Promise<ProcessInfo> => {
    const wanted = `socket:[${inode}]`;
    const pid = inode === 0 ? null : await findHolder(wanted, uid, recent);
    if (pid === null) return { path: null, name: null, uid };
    recent = [pid, ...recent.filter((other) => other !== pid)].slice(0, RECENT_LIMIT);
    const path = await readlink(`/proc/${pid}/exe`).catch(() => null); // gone, or another user's
    const plain = path?.replace(/ \(deleted\)$/, "") ?? null;
    return { path: plain, name: plain === null ? null : basename(plain), uid };
  };

  return {
    uid: async (query) => (await ownerOf(query))?.uid ?? null,
    process: async (query) => {
      const owner = await ownerOf(query);
      if (owner === null) return null;
      if (waiting >= QUEUE_LIMIT) return { path: null, name: null, uid: owner.uid };
      waiting++;
      const found = queue.then(() => search(owner)).finally(() => waiting--);
      queue = found.catch(() => {}); // the caller sees the failure; the next search starts in either case
      return found;
    },
  };
}

async function findHolder(wanted: string, uid: number, recent: readonly string[]): Promise<string | null> {
  for (const pid of recent) if (await holds(pid, wanted)) return pid;
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  // Young programs first; those of the socket's owner before those that were given it by another user.
  const others: string[] = [];
  for (const pid of pids.reverse()) {
    if (recent.includes(pid)) continue;
    const owner = await stat(`/proc/${pid}`).then(
      ({ uid: user }) => user,
      () => -1,
    ); // -1: ended meanwhile
    if (owner !== uid) others.push(pid);
    else if (await holds(pid, wanted)) return pid;
  }
  for (const pid of others) if (await holds(pid, wanted)) return pid;
  return null;
}

async function holds(pid: string, wanted: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const files = await readdir(folder).catch(() => []); // ended meanwhile, or not ours to see
  for (const file of files) if ((await readlink(`${folder}/${file}`).catch(() => "")) === wanted) return true; // closed meanwhile
  return false;
}
