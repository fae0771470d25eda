/** Configurations of Encrypted ClientHello in HTTPS records (RFC 9460, RFC 9848). */
import { DialError } from "#core/errors.ts";
import type { CachingResolver } from "./caching-resolver.ts";
import { canonicalName } from "./name.ts";
import { eachAnswer, type Packet } from "./packet.ts";
import { encodeQuestion, QueryReader } from "./query.ts";
import { readServiceBinding, type ServiceBinding } from "./svcb.ts";
import { RCODE, TYPE } from "./types.ts";

/** Records that only name another owner are followed so often (RFC 9460 §3). */
const MAX_ALIASES = 4;

/** The list of the favourite record that has one; null: none has, or there are none. Throws `DialError`. */
export async function lookUpEch(
  resolver: CachingResolver,
  host: string,
  signal: AbortSignal,
): Promise<Buffer | null> {
  const reader = new QueryReader();
  let name = canonicalName(host);
  for (let left = MAX_ALIASES; left > 0; left--) {
    const query = reader.read(encodeQuestion(name, TYPE.HTTPS));
    if (query === null) throw new DialError("resolve", `${host}: no question`);
    const { packet } = await resolver.answer(query, signal);
    if (packet.rcode !== RCODE.NOERROR && packet.rcode !== RCODE.NXDOMAIN)
      throw new DialError("resolve", `${host}: HTTPS records: response code ${packet.rcode}`);
    const bindings = bindingsIn(packet);
    const alias = bindings.find(({ priority }) => priority === 0);
    if (alias === undefined) return bindings.find(({ ech }) => ech !== null)?.ech ?? null;
    if (alias.target === "") return null;
    name = canonicalName(alias.target);
  }
  return null;
}

/** The favourite first. */
function bindingsIn(packet: Packet): ServiceBinding[] {
  const found: ServiceBinding[] = [];
  eachAnswer(packet, TYPE.HTTPS, (data) => void found.push(readServiceBinding(data)));
  return found.sort((one, two) => one.priority - two.priority);
}
