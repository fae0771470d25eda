import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { SystemError } from "./linux/libc.ts";
import { attribute, type NetlinkMessage } from "./linux/netlink/message.ts";
import { RTM_NEWNEIGH } from "./linux/netlink/neighbours.ts";
import type { NetlinkSocket } from "./linux/netlink/socket.ts";
import { NeighbourWatch } from "./neighbours.ts";

const ENOBUFS = 105;
const HOST = Uint8Array.of(192, 168, 1, 2);
const [OLD, NEW] = ["02:00:5e:00:53:01", "02:00:5e:00:53:02"] as const;

function told(mac: string): NetlinkMessage {
  const head = Uint8Array.of(2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0); // AF_INET, device 1, reachable
  const hardware = Buffer.from(mac.replaceAll(":", ""), "hex");
  const payload = Buffer.concat([head, attribute(1, HOST), attribute(2, hardware)]);
  return { type: RTM_NEWNEIGH, flags: 0, sequence: 0, payload };
}

/** A kernel that has told of the old hardware address, and had no room to tell of the new one. */
function overrun() {
  const waiting = [told(OLD), told(OLD)];
  let isLost = false;
  const poll = (): readonly NetlinkMessage[] | null => {
    if (isLost) {
      isLost = false;
      throw new SystemError("netlink", ENOBUFS);
    }
    const message = waiting.shift();
    return message === undefined ? null : [message];
  };
  const changes = { join() {}, poll } as Partial<NetlinkSocket> as NetlinkSocket;
  const dump: NetlinkSocket["dump"] = (_what, _type, _payload, visit) => visit(told(NEW));
  const requests = { dump } as Partial<NetlinkSocket> as NetlinkSocket;
  return { changes, requests, lose: () => void (isLost = true) };
}

test("what the kernel told before it had no room does not undo the list that is made then", () => {
  const { changes, requests, lose } = overrun();
  let known: string | null = null;
  const watch = new NeighbourWatch(changes, requests, () => ({ hold() {}, close() {} }), {
    reset: () => void (known = null),
    on: ({ mac }) => void (known = mac),
    log: SILENT,
  });
  lose();
  for (let looks = 0; looks < 3; looks++) {
    watch.look();
    assert.equal(known, NEW, `look ${looks}`);
  }
});
