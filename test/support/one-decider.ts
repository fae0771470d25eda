/** A worker's decisions about clients on loopback behind one listener, by a version that a test makes. */
import type { Destination } from "#core/session.ts";
import { AcceptMemory, newAcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { VersionWord, type DecisionData } from "#dataplane/workers/shared/decision-data.ts";
import { FIRST_ACCEPTED_SLOT as SLOT } from "#dataplane/workers/shared/relay-memory.ts";
import { Decider } from "#dataplane/workers/worker/decider.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { decisionData, decisionPorts } from "./decision-data.ts";

/** Does it decide about a client of SOCKS5 that wants to go there? */
export function openOneDecider(data: Partial<DecisionData>): (destination: Destination) => boolean {
  const shared = new AcceptMemory(newAcceptMemory(SLOT + 1));
  const word = new VersionWord();
  using ports = decisionPorts();
  const decider = new Decider(shared, { reportLazily() {}, mayBeOwn: () => false }, word, ports.port2);
  ports.port1.postMessage({ ...decisionData(1), ...data });
  decider.takeVersion();
  word.present = 1;
  const local = new Uint8Array(SOCKADDR_BYTES);
  encodeSockaddr(local, { address: Uint8Array.of(127, 0, 0, 1), port: 5000 });
  encodeSockaddr(shared.source(SLOT), { address: Uint8Array.of(127, 0, 0, 1), port: 4000 });
  return (destination) => {
    const asked = { slot: SLOT, listener: 0, user: -1, local, destination, success: () => local };
    const dial = decider.decide({ ...asked, type: "Socks5" });
    decider.slots.giveUp(SLOT);
    return dial !== null;
  };
}
