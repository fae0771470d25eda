import { SharedSalts } from "#lib/shared-salts.ts";
import { PacketWindows } from "#protocols/crypto/packet-windows.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { PacketUsers } from "./packet-users.ts";

/** Salts that are remembered, in two generations of so many. */
const SALTS = 131_072;
/** The 2022 edition knows the time, so nothing need be remembered beyond the skew in both directions. */
const WINDOW_MS = 60_000;

/** What the listeners of a host have seen. `now`: monotonic milliseconds. */
export class CipherMemory {
  readonly salts2022: ReplayFilter;
  /** Of the AEAD ciphers, which know no time: as many as there is room for. */
  readonly salts: ReplayFilter;
  readonly windows: PacketWindows;
  readonly packetUsers: PacketUsers;

  constructor(now: () => number = () => performance.now()) {
    this.salts2022 = new ReplayFilter({ capacity: SALTS, windowMs: WINDOW_MS, now });
    this.salts = new ReplayFilter({ capacity: SALTS, windowMs: Infinity, now });
    this.packetUsers = new PacketUsers(now);
    this.windows = new PacketWindows(WINDOW_MS, now);
  }
}

let serverSalts: SharedSalts | undefined;

/** Salts that servers have used towards any node, as all threads remember them: a replayed answer is a fault. */
export function saltsOfServers(): SharedSalts {
  return (serverSalts ??= new SharedSalts());
}
