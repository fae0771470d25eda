/** DNS over UDP: a fresh socket, hence a fresh random port, and a random id for every query (RFC 5452). */
import { ProtocolError } from "#core/errors.ts";
import type { Datagram } from "#core/session.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import { isTruncated } from "#dns/packet.ts";
import { resolveServer } from "./dial.ts";
import type { Upstream, UpstreamEnv } from "./upstream.ts";
import { abortion, checkAnswers, idOf, isBareRefusal, randomId, withId } from "./wire.ts";

/** A server that sends this many packets that match no query is not used any more: answers are being guessed. */
const MAX_FOREIGN_PACKETS = 64;
/** Asked again when a packet was lost; the whole query ends with its signal. */
const RESEND_MS = 1500;

/** `overTcp` is asked again when the answer was cut; its answer is final. */
export function openUdpUpstream(server: NameserverOptions, env: UpstreamEnv, overTcp: Upstream): Upstream {
  return {
    text: server.text,
    fixed: false,
    async exchange(query, signal) {
      const ask = (bounded: AbortSignal) => askByUdp(server, env, query, bounded);
      const answer = await env.sockets.use(signal, ask);
      return isTruncated(answer) ? overTcp.exchange(query, signal) : answer;
    },
    reset: () => overTcp.reset(),
    [Symbol.asyncDispose]: () => overTcp[Symbol.asyncDispose](),
  };
}

async function askByUdp(
  server: NameserverOptions,
  env: UpstreamEnv,
  query: Uint8Array,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const exit = env.exit();
  const ip = await resolveServer(server, env, signal);
  const destination = { host: null, ip, port: server.port };
  const { dialer } = exit;
  const flow = await (dialer.associateWith?.({ ip, port: server.port }) ??
    dialer.associate(destination, { signal, metadata: null }));
  const message = withId(query, randomId());
  const answered = Promise.withResolvers<Uint8Array>();
  let foreign = 0;
  flow.receive(({ payload, destination: from }: Datagram) => {
    const known = exit.kind !== "direct" || (from.ip === ip && from.port === server.port);
    if (known && isAnswer(message, payload)) answered.resolve(Uint8Array.from(payload));
    else if (known && isBareRefusal(message, payload))
      answered.reject(new ProtocolError(`${server.text} refused the question without repeating it`));
    else if (++foreign > MAX_FOREIGN_PACKETS)
      answered.reject(new ProtocolError(`${server.text} sent only packets that answer nothing`));
  });
  const send = () => flow.send({ payload: message, destination });
  const resend = setInterval(send, RESEND_MS);
  const waiting = abortion(signal);
  const ended = flow.closed.then(() => {
    throw new ProtocolError(`the path to ${server.text} closed before its answer`);
  });
  ended.catch(() => {}); // closing after the answer is the normal end
  try {
    send();
    return await Promise.race([answered.promise, waiting.aborted, ended]);
  } finally {
    clearInterval(resend);
    waiting.release();
    await flow[Symbol.asyncDispose]();
  }
}

/** A packet that is no answer is ignored instead of failing the query: a forged packet must not be able to end it. */
function isAnswer(query: Uint8Array, payload: Uint8Array): boolean {
  if (payload.length < 12 || idOf(payload) !== idOf(query)) return false;
  try {
    checkAnswers(query, payload);
    return true;
  } catch {
    return false; // a wrong question is a foreign packet like a wrong id
  }
}
