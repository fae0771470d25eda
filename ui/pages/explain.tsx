import { useEffect, useState } from "preact/hooks";
import type { Explanation } from "#ui/api/types.ts";
import { QuestionForm } from "#ui/parts/question-form.tsx";
import { Input, Select } from "#ui/parts/inputs.tsx";
import { Chain, Page, Panel, Tag } from "#ui/parts/small.tsx";
import { useQuestion } from "#ui/state/question.ts";

interface Asked {
  readonly destination: string;
  readonly port: string;
  readonly network: "tcp" | "udp";
  readonly source: string;
}

const NETWORKS = [
  ["tcp", "TCP"],
  ["udp", "UDP"],
] as const;
const VERDICTS = { yes: "matches", no: "does not match", unknown: "cannot tell" } as const;

/** `query`: a question that comes from another page. */
export function ExplainPage({ query }: { readonly query: URLSearchParams }) {
  const [asked, setAsked] = useState<Asked>({
    destination: query.get("destination") ?? "",
    port: query.get("port") ?? "",
    network: query.get("network") === "udp" ? "udp" : "tcp",
    source: query.get("source") ?? "",
  });
  const { outcome, ask } = useQuestion<Explanation>("rules/explain");
  const put = (): Promise<void> => ask({ ...asked });
  useEffect(() => {
    if (asked.destination !== "") void put();
  }, []);
  return (
    <Page title="Why there?">
      <QuestionForm
        outcome={outcome}
        action="Explain"
        onAsk={put}
        fields={<Fields asked={asked} onChange={(part) => setAsked((before) => ({ ...before, ...part }))} />}
        title="Ask where a connection would go"
        note="The rules are tried as for a real connection; nothing is sent there."
        answer={(explanation) => <Steps explanation={explanation} />}
      />
    </Page>
  );
}

interface FieldsProps {
  readonly asked: Asked;
  readonly onChange: (part: Partial<Asked>) => void;
}

function Fields({ asked, onChange }: FieldsProps) {
  return (
    <>
      <Input
        label="Name, address or URL"
        value={asked.destination}
        onInput={(destination) => onChange({ destination })}
        placeholder="www.example.org"
        required
      />
      <Input
        label="Port"
        type="number"
        value={asked.port}
        onInput={(port) => onChange({ port })}
        placeholder="443"
      />
      <Select
        label="Network"
        value={asked.network}
        options={NETWORKS}
        onChange={(network) => onChange({ network })}
      />
      <Input
        label="Source address (optional)"
        value={asked.source}
        onInput={(source) => onChange({ source })}
        placeholder="192.168.1.5"
      />
    </>
  );
}

function Steps({ explanation: { question, steps, chain } }: { readonly explanation: Explanation }) {
  return (
    <Panel title={question}>
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
