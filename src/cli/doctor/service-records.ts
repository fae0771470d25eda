/** Whether the system's nameservers let HTTPS records through (RFC 9460), in which the keys of ECH come. */
import { decodeMessage } from "#dns/message.ts";
import { encodeQuestion } from "#dns/query.ts";
import { RCODE, RCODE_MASK, TYPE } from "#dns/types.ts";
import { parseIp } from "#net/address/ip.ts";
import { bad, fine, type Finding } from "./finding.ts";
import { askByUdp, type Server } from "./leaks/ask.ts";

/** That there is no record is an answer, too. */
const ANSWERS: readonly number[] = [RCODE.NOERROR, RCODE.NXDOMAIN];

/** `servers`: those that answer a question for addresses. Null: there is none of these. */
export async function serviceRecords(servers: readonly string[], name: string): Promise<Finding | null> {
  if (servers.length === 0) return null;
  const asked = await Promise.all(
    servers.map(async (server) => ({ server, answer: await ask(placeOf(server), name) })),
  );
  const anyHas = asked.some(({ answer }) => typeof answer === "number" && answer > 0);
  const lines = asked.map(({ server, answer }) => {
    if (typeof answer === "string") return { isWrong: true, text: `${server} ${answer}` };
    const isWrong = answer === 0 && anyHas;
    const records = answer === 0 ? "no record" : `${answer} records`;
    return { isWrong, text: `${server} has ${records}${isWrong ? ", which another one has" : ""}` };
  });
  const found = `${name}: ${lines.map(({ text }) => text).join(", ")}`;
  if (!lines.some(({ isWrong }) => isWrong)) return fine("HTTPS records", found);
  return bad("warning", "HTTPS records", found, [
    "they are blocked: clients learn no keys of ECH by this nameserver and send the name in the clear, and browsers may wait for the answer",
    "another nameserver, or DNS by way of weir with a dns.nameserver of https:// or tls://",
  ]);
}

/** The number of records, or what is wrong. */
async function ask(server: Server, name: string): Promise<number | string> {
  const question = encodeQuestion(name, TYPE.HTTPS);
  const { refused, answer } = await askByUdp(server, question, {}, async () => {});
  if (refused !== null) return `fails with ${refused}`;
  if (answer === null) return "does not answer this question";
  try {
    const { flags, answers } = decodeMessage(answer);
    const code = flags & RCODE_MASK;
    if (!ANSWERS.includes(code)) return `answers it with error ${code}`;
    return answers.filter(({ type }) => type === TYPE.HTTPS).length;
  } catch {
    return "answers it with what is no DNS message";
  }
}

/** As node:dns writes servers: an address, or one with a port. */
function placeOf(text: string): Server {
  if (parseIp(text) !== null) return { host: text, port: 53 };
  const [, six, four, port] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(text) ?? [];
  return { host: six ?? four ?? text, port: Number(port ?? 53) };
}
