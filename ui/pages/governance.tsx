import { useMemo, useState } from "preact/hooks";
import type { GovernanceStatus, PolicyStatus } from "#ui/api/governance-types.ts";
import { Segments } from "#ui/parts/inputs.tsx";
import { RollbackBanner } from "#ui/parts/rollback-banner.tsx";
import { Fault, Page, Panel } from "#ui/parts/small.tsx";
import { useResource, useWords } from "#ui/state/context.ts";
import { dimensionOf, DIMENSIONS, type DimensionName } from "#ui/state/policy-document.ts";
import { rangeOf, SPANS } from "#ui/state/reports.ts";
import { Policies } from "./policies.tsx";
import { UsageReport } from "./usage-report.tsx";
import { TopTalkers } from "./top-talkers.tsx";

const REFRESH_MS = 5_000;

export function GovernancePage() {
  const { t } = useWords();
  const status = useResource<GovernanceStatus>("api/svc/traffic-control/status", REFRESH_MS);
  const [dimension, setDimension] = useState<DimensionName>("total");
  const [granularity, setGranularity] = useState(SPANS[0]!.granularity);
  const [picked, setPicked] = useState<string | null>(null);
  const { value, error } = status;
  const all = value?.policies ?? [];
  const members = all.filter((policy) => dimensionOf(policy) === dimension);
  const chosen = members.find(({ policy }) => policy.id === picked) ?? members[0] ?? null;
  const span = SPANS.find((entry) => entry.granularity === granularity) ?? SPANS[0]!;
  // the hour in which the page looks: another one asks anew
  const hour = Math.floor(Date.now() / 3_600_000);
  const range = useMemo(() => rangeOf(span, Date.now()), [span, hour]);
  const show = (policy: PolicyStatus): void => {
    setDimension(dimensionOf(policy));
    setPicked(policy.policy.id);
  };
  return (
    <Page title={t("page.usage")}>
      <Fault text={error} />
      {value !== null && (
        <>
          {value.rollback !== undefined && (
            <RollbackBanner
              rollback={value.rollback}
              sinceMs={value.rollback.since * 1000}
              setting="traffic-control.store"
              lost={t("usage.lost")}
            />
          )}
          {value.store_error !== undefined && (
            <p class="banner" role="alert">
              {t("usage.storeError", { error: value.store_error })}
            </p>
          )}
          <Panel
            title={t("usage.usage")}
            tools={
              <div class="tools">
                <Segments
                  label={t("usage.by")}
                  value={dimension}
                  options={DIMENSIONS.map(([value, name]) => [value, t(name)])}
                  onChange={setDimension}
                />
                <Segments
                  label={t("usage.per")}
                  value={granularity}
                  options={SPANS.map((one) => [one.granularity, t(one.label)])}
                  onChange={setGranularity}
                />
              </div>
            }
          >
            <UsageReport members={members} chosen={chosen} span={span} range={range} onChoose={setPicked} />
          </Panel>
          <Panel title={t("usage.topTalkers")}>
            <TopTalkers
              policies={dimension === "total" ? all.filter((one) => dimensionOf(one) !== "total") : members}
              span={span}
              range={range}
              onShow={show}
            />
          </Panel>
          <Policies enabled={value.enabled} policies={all} reload={status.reload} />
        </>
      )}
    </Page>
  );
}
