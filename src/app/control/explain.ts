import { ApiError } from "#core/errors.ts";
import type { ExplainQuestion, ExplainView } from "#core/control.ts";
import type { Dns } from "#dns/dns.ts";
import { explanationLines } from "#dns/explain-text.ts";
import { parseIp } from "#net/address/ip.ts";
import { explain, type ExplainedNote, type ExplainedRules } from "#router/explain.ts";
import { parseQuestion } from "#router/question.ts";
import type { RuleRouter } from "#router/rule-router.ts";

const TIMEOUT_MS = 10_000;

/** "Why did this go there?" for the API. */
export async function explainView(
  router: RuleRouter,
  dns: Pick<Dns, "explain"> | null,
  question: ExplainQuestion,
): Promise<ExplainView> {
  const source = question.source === null ? null : parseIp(question.source);
  if (question.source !== null && source === null)
    throw new ApiError(400, `source: expected an IP address, got ${question.source}`);
  const destination = parseQuestion(question.destination, question.port ?? undefined);
  if ("fault" in destination) throw new ApiError(400, `destination: ${destination.fault}`);
  const {
    question: asked,
    entries,
    decision,
  } = await explain(
    router,
    {
      destination,
      network: question.network,
      ...(source === null ? {} : { source }),
      ...(question.inbound === null ? {} : { inbound: { name: question.inbound } }),
    },
    AbortSignal.timeout(TIMEOUT_MS),
  );
  const { host } = destination;
  const dnsLines = host === null || dns === null ? [] : explanationLines(dns.explain(host));
  const steps = [...dnsLines.map(noteStep), ...entries.flatMap(stepOf)];
  const { rule, chain } = decision;
  if (rule !== null) {
    const { index, apiType: type, payload, target } = rule;
    steps.push({ index, type, payload, target, verdict: "yes", note: "this rule decides" });
  }
  return { question: asked, steps, chain };
}

type Step = ExplainView["steps"][number];

function noteStep(note: string): Step {
  return { index: -1, type: "", payload: "", target: "", verdict: "unknown", note };
}

function stepOf(entry: ExplainedRules | ExplainedNote): readonly Step[] {
  if (entry.kind === "note") return [noteStep(entry.text)];
  const { first, last, target, types, examples, why, kind } = entry;
  const count = last - first + 1;
  const payload = count === 1 ? (examples[0]?.payload ?? "") : `${count.toLocaleString("en")} rules`;
  const note = kind === "passed" ? `matches, but ${why}` : why;
  const verdict = kind === "passed" ? "yes" : "no";
  return [{ index: first, type: types.join(", "), payload, target, verdict, note }];
}
