import { useState } from "preact/hooks";
import type { DnsAnswer, DnsRecord } from "#ui/api/types.ts";
import { durationText } from "#ui/format.ts";
import { Button, Empty, Fault, Input, Page, Panel, Select } from "#ui/parts/small.tsx";
import { textOf, useAction, useEnvironment } from "#ui/state/context.ts";

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

type Outcome =
  | { readonly kind: "none" | "busy" }
  | { readonly kind: "failed"; readonly text: string }
  | { readonly kind: "answer"; readonly answer: DnsAnswer };

export function DnsPage() {
  const { link } = useEnvironment();
  const act = useAction();
  const [name, setName] = useState("");
  const [type, setType] = useState<Type>("A");
  const [outcome, setOutcome] = useState<Outcome>({ kind: "none" });
  const ask = async (): Promise<void> => {
    setOutcome({ kind: "busy" });
    try {
      const query = new URLSearchParams({ name: name.trim(), type });
      setOutcome({ kind: "answer", answer: await link.get<DnsAnswer>(`dns/query?${query}`) });
    } catch (error) {
      setOutcome({ kind: "failed", text: textOf(error) });
    }
  };
  const flush = (path: string, what: string): Promise<boolean> =>
    act(() => link.send("POST", path), `${what} was not emptied`, `${what} is empty`);
  return (
    <Page
      title="DNS query"
      tools={
        <>
          <Button label="Empty the DNS cache" onPress={() => flush("cache/dns/flush", "The DNS cache")} />
          <Button
            label="Empty the fake-IP pool"
            onPress={() => flush("cache/fakeip/flush", "The fake-IP pool")}
          />
        </>
      }
    >
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <Input label="Name" value={name} onInput={setName} placeholder="www.example.org" required />
        <Select label="Type" value={type} options={TYPES.map((entry) => [entry, entry])} onChange={setType} />
        <Button label="Ask" kind="main" busy={outcome.kind === "busy"} />
      </form>
      <div aria-live="polite">
        {outcome.kind === "none" && (
          <Empty title="Ask the resolver">
            Hosts and fake-IP are left out: the answer is that of the upstream servers.
          </Empty>
        )}
        {outcome.kind === "failed" && <Fault text={outcome.text} />}
        {outcome.kind === "answer" && <Answer answer={outcome.answer} />}
      </div>
    </Page>
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
