/** rcode://name: a fixed answer, without a query. */
import type { NameserverOptions } from "#core/dns-options.ts";
import { RCODE_NAMES } from "#net/dial/nameserver.ts";
import { questionEndOf } from "#dns/packet.ts";
import { FLAG } from "#dns/types.ts";
import type { Upstream } from "./upstream.ts";

export function openRcodeUpstream(server: NameserverOptions): Upstream {
  const code = RCODE_NAMES[server.host as keyof typeof RCODE_NAMES];
  return {
    text: server.text,
    fixed: true,
    async exchange(query) {
      const answer = Buffer.from(query.subarray(0, questionEndOf(query)));
      answer.writeUInt16BE(FLAG.QR | FLAG.RD | FLAG.RA | code, 2);
      answer.writeUInt16BE(1, 4);
      answer.fill(0, 6, 12);
      return answer;
    },
    reset() {},
    async [Symbol.asyncDispose]() {},
  };
}
