/** What the parameters of a nameserver entry change about its queries and answers (dns.md §10.3, §10.4). */
import type { NameserverOptions } from "#core/dns-options.ts";
import { bareAnswer } from "#dns/answer.ts";
import { withClientSubnet } from "#dns/edns.ts";
import { decodeMessage, encodeMessage, type ResourceRecord } from "#dns/message.ts";
import { QueryReader } from "#dns/query.ts";
import type { Upstream } from "./upstream.ts";

/** The same upstream where the entry has no such parameter. */
export function withParameters(upstream: Upstream, server: NameserverOptions): Upstream {
  const { ecs, ecsOverride } = server;
  const disabled = new Set(server.disabledTypes);
  if (ecs === null && disabled.size === 0) return upstream;
  const reader = new QueryReader();
  return {
    text: upstream.text,
    fixed: upstream.fixed,
    async exchange(bytes, signal) {
      const query = reader.read(bytes);
      if (query === null) return upstream.exchange(bytes, signal);
      if (disabled.has(query.type)) return bareAnswer(query, 0).bytes;
      const answer = await upstream.exchange(
        ecs === null ? bytes : withClientSubnet(query, ecs, ecsOverride),
        signal,
      );
      return disabled.size === 0 ? answer : withoutTypes(answer, disabled);
    },
    reset: () => upstream.reset(),
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}

function withoutTypes(answer: Uint8Array, types: ReadonlySet<number>): Uint8Array {
  const message = decodeMessage(answer);
  const keep = (records: readonly ResourceRecord[]) => records.filter(({ type }) => !types.has(type));
  const [answers, authorities] = [keep(message.answers), keep(message.authorities)];
  return encodeMessage({ ...message, answers, authorities, additionals: keep(message.additionals) });
}
