import { useEffect, useState } from "preact/hooks";
import type { Counters, PolicyStatus } from "#ui/api/governance-types.ts";
import { Empty, Fault, Tag } from "#ui/parts/small.tsx";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";
import { dimensionKey, seriesOf, titleOf } from "#ui/state/policy-document.ts";
import { queryOf, type Span } from "#ui/state/reports.ts";

/** Questions at once; there may be 256 policies. */
const AT_ONCE = 6;
const SHOWN = 10;

interface Talker {
  readonly policy: PolicyStatus;
  readonly counters: Counters;
}

interface Props {
  readonly policies: readonly PolicyStatus[];
  readonly span: Span;
  readonly range: readonly [from: number, to: number];
  readonly onShow: (policy: PolicyStatus) => void;
}

/** The users with the most traffic in the time that the plot shows. */
export function TopTalkers({ policies, span, range, onShow }: Props) {
  const { link } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const [talkers, setTalkers] = useState<readonly Talker[] | null>(null);
  const [error, setError] = useState("");
  const names = policies.map(seriesOf).join(" ");
  useEffect(() => {
    let isGone = false;
    const ask = async (policy: PolicyStatus): Promise<Talker> => {
      const query = queryOf(seriesOf(policy), span, range);
      const path = `api/svc/traffic-control/reports/summary?${query}`;
      const { summary } = await link.get<{ summary: Counters }>(path);
      return { policy, counters: summary };
    };
    inTurns(policies, ask)
      .then((all) => !isGone && (setTalkers(sorted(all)), setError("")))
      .catch((fault: unknown) => !isGone && setError(textOf(words, fault)));
    return () => void (isGone = true);
  }, [names, span, range]);
  if (error !== "") return <Fault text={error} />;
  if (talkers === null || talkers.length === 0)
    return (
      <Empty title={talkers === null ? t("common.loading") : t("usage.noTalkers")}>
        {talkers === null ? undefined : t("usage.noTalkersText")}
      </Empty>
    );
  const most = total(talkers[0]!);
  return (
    <ol class="lines">
      {talkers.slice(0, SHOWN).map((talker) => (
        <li key={talker.policy.policy.id} class="line">
          <span class="line-main">
            <span class="named">
              <button type="button" class="link" onClick={() => onShow(talker.policy)}>
                {titleOf(words, talker.policy)}
              </button>
              <Tag>{t(dimensionKey(talker.policy))}</Tag>
            </span>
            <meter
              class="usage"
              max={most}
              value={total(talker)}
              aria-label={titleOf(words, talker.policy)}
            />
          </span>
          <span class="number">
            {t("common.downUp", {
              down: words.bytes(talker.counters.download_bytes),
              up: words.bytes(talker.counters.upload_bytes),
            })}
            <small>{t("common.connections", { count: talker.counters.connections })}</small>
          </span>
        </li>
      ))}
    </ol>
  );
}

const total = ({ counters }: Talker): number => counters.download_bytes + counters.upload_bytes;

function sorted(talkers: readonly Talker[]): readonly Talker[] {
  return talkers.filter((talker) => total(talker) > 0).toSorted((a, b) => total(b) - total(a));
}

async function inTurns<T, U>(items: readonly T[], work: (item: T) => Promise<U>): Promise<readonly U[]> {
  const results: U[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [at, item] of queue) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
