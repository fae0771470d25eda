import { useEffect, useState } from "preact/hooks";
import type { Explanation } from "#ui/api/types.ts";
import { Button, Chain, Empty, Fault, Input, Page, Panel, Select, Tag } from "#ui/parts/small.tsx";
import { textOf, useEnvironment } from "#ui/state/context.ts";

interface Question {
  readonly destination: string;
  readonly port: string;
  readonly network: "tcp" | "udp";
  readonly source: string;
}

type Outcome =
  | { readonly kind: "none" | "busy" }
  | { readonly kind: "failed"; readonly text: string }
  | { readonly kind: "answer"; readonly explanation: Explanation };

const NETWORKS = [
  ["tcp", "TCP"],
  ["udp", "UDP"],
] as const;
const VERDICTS = { yes: "matches", no: "does not match", unknown: "cannot tell" } as const;

export function ExplainPage({ query }: { readonly query: URLSearchParams }) {
  const { link } = useEnvironment();
  const [question, setQuestion] = useState<Question>({
    destination: query.get("destination") ?? "",
    port: query.get("port") ?? "443",
    network: query.get("network") === "udp" ? "udp" : "tcp",
    source: query.get("source") ?? "",
  });
  const [outcome, setOutcome] = useState<Outcome>({ kind: "none" });
  const change = (part: Partial<Question>): void => setQuestion({ ...question, ...part });
  const ask = async (): Promise<void> => {
    setOutcome({ kind: "busy" });
    const asked = Object.entries(question)
      .map(([key, value]) => [key, String(value).trim()] as [string, string])
      .filter(([, value]) => value !== "");
    try {
      const explanation = await link.get<Explanation>(`rules/explain?${new URLSearchParams(asked)}`);
      setOutcome({ kind: "answer", explanation });
    } catch (error) {
      setOutcome({ kind: "failed", text: textOf(error) });
    }
  };
  useEffect(() => {
    if (question.destination !== "") void ask();
  }, []);
  return (
    <Page title="Why there?">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <Input
          label="Name or address"
          value={question.destination}
          onInput={(destination) => change({ destination })}
          placeholder="www.example.org"
          required
        />
        <Input label="Port" type="number" value={question.port} onInput={(port) => change({ port })} />
        <Select
          label="Network"
          value={question.network}
          options={NETWORKS}
          onChange={(network) => change({ network })}
        />
        <Input
          label="Source address (optional)"
          value={question.source}
          onInput={(source) => change({ source })}
          placeholder="192.168.1.5"
        />
        <Button label="Explain" kind="main" busy={outcome.kind === "busy"} />
      </form>
      <div aria-live="polite">
        {outcome.kind === "none" && (
          <Empty title="Ask where a connection would go">
            The rules are tried as for a real connection; nothing is sent there.
          </Empty>
        )}
        {outcome.kind === "failed" && <Fault text={outcome.text} />}
        {outcome.kind === "answer" && <Steps explanation={outcome.explanation} />}
      </div>
    </Page>
  );
}

function Steps({ explanation: { steps, chain } }: { readonly explanation: Explanation }) {
  return (
    <Panel title="Answer">
      <p class="answer">
        It goes to <Chain names={chain} />
      </p>
      <ol class="steps">
        {steps.map(({ index, type, payload, target, verdict, note }, at) => (
          <li key={at} class={`step ${verdict}`}>
            {index >= 0 && (
              <p class="step-rule">
                <Tag kind={verdict}>{VERDICTS[verdict]}</Tag>
                <span class="text">
                  {index}: {type} {payload}
                  {target !== "" && ` → ${target}`}
                </span>
              </p>
            )}
            <p class="step-note">{note}</p>
          </li>
        ))}
      </ol>
    </Panel>
  );
}
