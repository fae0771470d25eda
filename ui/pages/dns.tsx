import { useState } from "preact/hooks";
import type { DnsAnswer, DnsRecord } from "#ui/api/types.ts";
import { QuestionForm } from "#ui/parts/question-form.tsx";
import { Input, Select } from "#ui/parts/inputs.tsx";
import { TableHead, useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Empty, Page, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import type { SortKey } from "#ui/state/sorted.ts";
import type { PlainKey } from "#ui/words/words.ts";
import { useQuestion } from "#ui/state/question.ts";

const TYPES = ["A", "AAAA", "CNAME", "MX", "TXT", "NS", "SOA", "SRV", "PTR", "HTTPS", "SVCB"] as const;
type Type = (typeof TYPES)[number];

/** IANA, "DNS RCODEs". */
const STATUS = [
  "dns.noError",
  "dns.formatError",
  "dns.serverFailure",
  "dns.noName",
  "dns.notImplemented",
  "dns.refused",
] as const;
/** IANA, "Resource Record (RR) TYPEs": those that answers carry. */
const TYPE_NAMES: Readonly<Record<number, string>> = {
  1: "A",
  2: "NS",
  5: "CNAME",
  6: "SOA",
  12: "PTR",
  15: "MX",
  16: "TXT",
  28: "AAAA",
  33: "SRV",
  64: "SVCB",
  65: "HTTPS",
};

export function DnsPage() {
  const { t } = useWords();
  const [name, setName] = useState("");
  const [type, setType] = useState<Type>("A");
  const { outcome, ask } = useQuestion<DnsAnswer>("dns/query");
  return (
    <Page title={t("page.dns")} tools={<Caches />}>
      <QuestionForm
        outcome={outcome}
        action={t("dns.ask")}
        onAsk={() => ask({ name, type })}
        fields={
          <>
            <Input
              label={t("common.name")}
              value={name}
              onInput={setName}
              placeholder="www.example.org"
              required
            />
            <Select
              label={t("common.type")}
              value={type}
              options={TYPES.map((entry) => [entry, entry])}
              onChange={setType}
            />
          </>
        }
        title={t("dns.title")}
        note={t("dns.note")}
        answer={(answer) => <Answer answer={answer} />}
      />
    </Page>
  );
}

function Caches() {
  const { link } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  const flush = (path: string, what: string): Promise<boolean> =>
    act(() => link.send("POST", path), t("dns.notEmptied", { what }), t("dns.emptied", { what }));
  return (
    <>
      <Button label={t("dns.emptyCache")} onPress={() => flush("cache/dns/flush", t("dns.cache"))} />
      <Button label={t("dns.emptyPool")} onPress={() => flush("cache/fakeip/flush", t("dns.pool"))} />
    </>
  );
}

function Answer({
  answer: { Status, Answer: records = [], Authority = [], Additional = [] },
}: {
  answer: DnsAnswer;
}) {
  const { t } = useWords();
  const known = STATUS[Status];
  const status = known === undefined ? t("dns.status", { status: String(Status) }) : t(known);
  return (
    <>
      <Panel title={t("dns.answer", { status })}>
        {records.length === 0 ? <Empty title={t("dns.noRecords")} /> : <Records records={records} />}
      </Panel>
      {Authority.length > 0 && (
        <Panel title={t("dns.authority")}>
          <Records records={Authority} />
        </Panel>
      )}
      {Additional.length > 0 && (
        <Panel title={t("dns.additional")}>
          <Records records={Additional} />
        </Panel>
      )}
    </>
  );
}

const COLUMNS: readonly (readonly [PlainKey, SortKey<DnsRecord>])[] = [
  ["common.name", ({ name }) => name],
  ["common.type", ({ type }) => TYPE_NAMES[type] ?? String(type)],
  ["dns.lifetime", ({ TTL }) => TTL],
  ["dns.data", ({ data }) => data],
];

function Records({ records }: { readonly records: readonly DnsRecord[] }) {
  const words = useWords();
  const { t } = words;
  const columns = COLUMNS.map(([name, key]) => ({ name: t(name), key }));
  const { shown, ordering } = useOrdering("records", records, columns);
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={t("dns.records")}>
      <table class="table" aria-label={t("dns.records")}>
        <TableHead ordering={ordering} numbers={[2]} />
        <tbody>
          {shown.map(({ name, type, TTL, data }, at) => (
            <tr key={at}>
              <td>{name}</td>
              <td>{TYPE_NAMES[type] ?? type}</td>
              <td class="number">{words.duration(TTL * 1000)}</td>
              <td class="break">{data}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
