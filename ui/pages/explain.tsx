import { useEffect, useState } from "preact/hooks";
import type { Explanation } from "#ui/api/types.ts";
import { QuestionForm } from "#ui/parts/question-form.tsx";
import { Input, Select } from "#ui/parts/inputs.tsx";
import { Chain, Page, Panel, Tag } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";
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
const VERDICTS = { yes: "explain.yes", no: "explain.no", unknown: "explain.unknown" } as const;

/** `query`: a question that comes from another page. */
export function ExplainPage({ query }: { readonly query: URLSearchParams }) {
  const { t } = useWords();
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
    <Page title={t("page.explain")}>
      <QuestionForm
        outcome={outcome}
        action={t("explain.explain")}
        onAsk={put}
        fields={<Fields asked={asked} onChange={(part) => setAsked((before) => ({ ...before, ...part }))} />}
        title={t("explain.title")}
        note={t("explain.note")}
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
  const { t } = useWords();
  return (
    <>
      <Input
        label={t("explain.destination")}
        value={asked.destination}
        onInput={(destination) => onChange({ destination })}
        placeholder="www.example.org"
        required
      />
      <Input
        label={t("explain.port")}
        type="number"
        value={asked.port}
        onInput={(port) => onChange({ port })}
        placeholder="443"
      />
      <Select
        label={t("explain.network")}
        value={asked.network}
        options={NETWORKS}
        onChange={(network) => onChange({ network })}
      />
      <Input
        label={t("explain.source")}
        value={asked.source}
        onInput={(source) => onChange({ source })}
        placeholder="192.168.1.5"
      />
    </>
  );
}

function Steps({ explanation: { question, steps, chain } }: { readonly explanation: Explanation }) {
  const { t } = useWords();
  return (
    <Panel title={question}>
      <p class="answer">
        {t("explain.goesTo")} <Chain names={chain} />
      </p>
      <ol class="steps">
        {steps.map(({ index, type, payload, target, verdict, note }, at) => (
          <li key={at} class={`step ${verdict}`}>
            {index >= 0 && (
              <p class="step-rule">
                <Tag kind={verdict}>{t(VERDICTS[verdict])}</Tag>
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
