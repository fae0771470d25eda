/** What a process listens by, as the system says it. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** How many TCP sockets a process listens by, of IPv4. */
export function listeningSockets(pid: number): number {
  const table = readFileSync(`/proc/${pid}/net/tcp`, "latin1").trim().split("\n");
  const rows = table.map((line) => line.trim().split(/\s+/));
  const listening = new Set(
    rows.flatMap(({ 3: state, 9: inode }) => (state === "0A" ? [`socket:[${inode}]`] : [])),
  );
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => {
    try {
      return listening.has(readlinkSync(`${folder}/${fd}`));
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}
