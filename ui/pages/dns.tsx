import { useState } from "preact/hooks";
import type { DnsAnswer, DnsRecord } from "#ui/api/types.ts";
import { durationText } from "#ui/format.ts";
import { QuestionForm } from "#ui/parts/question-form.tsx";
import { Input, Select } from "#ui/parts/inputs.tsx";
import { Button, Empty, Page, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment } from "#ui/state/context.ts";
import { useQuestion } from "#ui/state/question.ts";

const TYPES = ["A", "AAAA", "CNAME", "MX", "TXT", "NS", "SOA", "SRV", "PTR", "HTTPS", "SVCB"] as const;
type Type = (typeof TYPES)[number];

/** IANA, "DNS RCODEs". */
const STATUS = ["no error", "format error", "server failure", "no such name", "not implemented", "refused"];
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
  const [name, setName] = useState("");
  const [type, setType] = useState<Type>("A");
  const { outcome, ask } = useQuestion<DnsAnswer>("dns/query");
  return (
    <Page title="DNS query" tools={<Caches />}>
      <QuestionForm
        outcome={outcome}
        action="Ask"
        onAsk={() => ask({ name, type })}
        fields={
          <>
            <Input label="Name" value={name} onInput={setName} placeholder="www.example.org" required />
            <Select
              label="Type"
              value={type}
              options={TYPES.map((entry) => [entry, entry])}
              onChange={setType}
            />
          </>
        }
        title="Ask the resolver"
        note="Hosts and fake-IP are left out: the answer is that of the upstream servers."
        answer={(answer) => <Answer answer={answer} />}
      />
    </Page>
  );
}

function Caches() {
  const { link } = useEnvironment();
  const act = useAction();
  const flush = (path: string, what: string): Promise<boolean> =>
    act(() => link.send("POST", path), `${what} was not emptied`, `${what} is empty`);
  return (
    <>
      <Button label="Empty the DNS cache" onPress={() => flush("cache/dns/flush", "The DNS cache")} />
      <Button
        label="Empty the fake-IP pool"
        onPress={() => flush("cache/fakeip/flush", "The fake-IP pool")}
      />
    </>
  );
}

function Answer({
  answer: { Status, Answer: records = [], Authority = [], Additional = [] },
}: {
  answer: DnsAnswer;
}) {
  return (
    <>
      <Panel title={`Answer: ${STATUS[Status] ?? `status ${Status}`}`}>
        {records.length === 0 ? <Empty title="No records of this type" /> : <Records records={records} />}
      </Panel>
      {Authority.length > 0 && (
        <Panel title="Authority">
          <Records records={Authority} />
        </Panel>
      )}
      {Additional.length > 0 && (
        <Panel title="Additional">
          <Records records={Additional} />
        </Panel>
      )}
    </>
  );
}

function Records({ records }: { readonly records: readonly DnsRecord[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Records">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Type</th>
            <th scope="col" class="number">
              Lives for
            </th>
            <th scope="col">Data</th>
          </tr>
        </thead>
        <tbody>
          {records.map(({ name, type, TTL, data }, at) => (
            <tr key={at}>
              <td>{name}</td>
              <td>{TYPE_NAMES[type] ?? type}</td>
              <td class="number">{durationText(TTL * 1000)}</td>
              <td class="break">{data}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
