import * as z from "zod";
import type { DnsAnswerView, DnsControl, DnsRecordView } from "#core/control.ts";
import { ApiError, DialError, messageOf, ProtocolError } from "#core/errors.ts";
import { amount } from "#api/answer-shapes.ts";
import { route, type Route } from "#api/route.ts";
import { queryOf } from "#api/shapes.ts";

const TIMEOUT_MS = 5_000;

/** IANA, "Resource Record (RR) TYPEs": what people ask for. */
const TYPES: ReadonlyMap<string, number> = new Map(
  `
    A=1 NS=2 CNAME=5 SOA=6 PTR=12 HINFO=13 MX=15 TXT=16 RP=17 AFSDB=18 SIG=24 KEY=25 AAAA=28 LOC=29
    SRV=33 NAPTR=35 KX=36 CERT=37 DNAME=39 OPT=41 APL=42 DS=43 SSHFP=44 IPSECKEY=45 RRSIG=46 NSEC=47
    DNSKEY=48 DHCID=49 NSEC3=50 NSEC3PARAM=51 TLSA=52 SMIMEA=53 HIP=55 CDS=59 CDNSKEY=60 OPENPGPKEY=61
    CSYNC=62 ZONEMD=63 SVCB=64 HTTPS=65 SPF=99 EUI48=108 EUI64=109 URI=256 CAA=257 ANY=255 AXFR=252
    IXFR=251`
    .trim()
    .split(/\s+/)
    .map((pair) => pair.split("="))
    .map(([type = "", number]) => [type, Number(number)]),
);

const query = queryOf({ name: z.string().min(1).max(255), type: z.string().default("A") });

const records = z
  .array(z.object({ name: z.string(), type: amount(), TTL: amount(), data: z.string() }))
  .nonempty()
  .optional();

const shape = z.object({
  Status: amount(),
  Question: z.array(z.object({ Name: z.string(), Qtype: amount(), Qclass: z.literal(1) })),
  TC: z.boolean(),
  RD: z.boolean(),
  RA: z.boolean(),
  AD: z.boolean(),
  CD: z.boolean(),
  Answer: records,
  Authority: records,
  Additional: records,
});

export function dnsRoutes(dns: DnsControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "operate",
      path: "/dns/query",
      acts: true,
      summary: "Ask the resolver, past hosts and fake-IP",
      query,
      answer: { status: 200, description: "The answer in the JSON form of public resolvers", schema: shape },
      faults: { 500: "The resolver is off, or no server answered" },
      async handle({ query: { name, type }, signal }) {
        if (!dns.enabled) throw new ApiError(500, "DNS section is disabled");
        const number = TYPES.get(type);
        if (number === undefined) throw new ApiError(400, "invalid query type");
        const qualified = name.endsWith(".") ? name : `${name}.`;
        const deadline = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
        return answerJson(qualified, number, await ask(dns, qualified, number, deadline));
      },
    }),
  ];
}

async function ask(dns: DnsControl, name: string, type: number, signal: AbortSignal): Promise<DnsAnswerView> {
  try {
    return await dns.query(name, type, signal);
  } catch (error) {
    if (error instanceof DialError || error instanceof ProtocolError || signal.aborted) {
      throw new ApiError(500, messageOf(error), { cause: error });
    }
    throw error;
  }
}

function answerJson(name: string, type: number, answer: DnsAnswerView) {
  return {
    Status: answer.status,
    Question: [{ Name: name, Qtype: type, Qclass: 1 }],
    TC: answer.truncated,
    RD: answer.recursionDesired,
    RA: answer.recursionAvailable,
    AD: answer.authenticData,
    CD: answer.checkingDisabled,
    ...section("Answer", answer.answers),
    ...section("Authority", answer.authority),
    ...section("Additional", answer.additional),
  };
}

/** Empty sections are left out. */
function section(title: string, records: readonly DnsRecordView[]) {
  if (records.length === 0) return {};
  return {
    [title]: records.map(({ name, type, ttlSeconds, data }) => ({ name, type, TTL: ttlSeconds, data })),
  };
}
