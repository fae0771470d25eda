import type { PolicyStatus } from "#ui/api/governance-types.ts";
import { OrderSelect, useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Empty, Tag } from "#ui/parts/small.tsx";
import { rateLimitText } from "#ui/quantity.ts";
import { useWords } from "#ui/state/context.ts";
import { dimensionKey, titleOf } from "#ui/state/policy-document.ts";

interface LinesProps {
  readonly enabled: boolean;
  readonly policies: readonly PolicyStatus[];
  readonly onEdit: (status: PolicyStatus) => unknown;
  readonly onReset: (status: PolicyStatus) => unknown;
  readonly onRemove: (status: PolicyStatus) => unknown;
}

/** The policies with what they have counted. */
export function PolicyLines({ enabled, policies, onEdit, onReset, onRemove }: LinesProps) {
  const words = useWords();
  const { t } = words;
  const { shown, ordering } = useOrdering<PolicyStatus>("policies", policies, [
    { name: t("common.name"), key: (status) => titleOf(words, status) },
    { name: t("common.kind"), key: (status) => t(dimensionKey(status)) },
    { name: t("common.down"), key: ({ counters }) => counters.download_bytes },
    { name: t("common.up"), key: ({ counters }) => counters.upload_bytes },
    { name: t("user.quota"), key: usedShare },
    { name: t("page.connections"), key: ({ active_connections: active }) => active },
  ]);
  if (policies.length === 0)
    return <Empty title={enabled ? t("policies.none") : t("policies.off")}>{t("policies.noneText")}</Empty>;
  return (
    <>
      {shown.length > 1 && <OrderSelect ordering={ordering} />}
      <ul class="lines" aria-label={t("policies.title")}>
        {shown.map((status) => (
          <PolicyLine
            key={status.policy.id}
            status={status}
            onEdit={() => onEdit(status)}
            onReset={() => onReset(status)}
            onRemove={() => onRemove(status)}
          />
        ))}
      </ul>
    </>
  );
}

/** Null: it has no quota. */
function usedShare({ policy: { quota }, rolling }: PolicyStatus): number | null {
  const { total_bytes: total = 0 } = quota;
  return total === 0 ? null : (rolling.upload_bytes + rolling.download_bytes) / total;
}

interface LineProps {
  readonly status: PolicyStatus;
  readonly onEdit: () => unknown;
  readonly onReset: () => unknown;
  readonly onRemove: () => unknown;
}

function PolicyLine({ status, onEdit, onReset, onRemove }: LineProps) {
  const words = useWords();
  const { t } = words;
  const name = titleOf(words, status);
  const { policy, counters, rolling, active_connections: active, over_quota: over } = status;
  const { total_bytes: total = 0 } = policy.quota;
  const limits = [
    policy.download_bps && t("policies.limitDown", { rate: rateLimitText(policy.download_bps) }),
    policy.upload_bps && t("policies.limitUp", { rate: rateLimitText(policy.upload_bps) }),
    total > 0 &&
      t("policies.usedOf", {
        used: words.bytes(rolling.upload_bytes + rolling.download_bytes),
        total: words.bytes(total),
      }),
  ].filter(Boolean);
  return (
    <li class="line wrap">
      <span class="line-main">
        <span class="text">
          {name} <Tag>{t(dimensionKey(status))}</Tag>{" "}
          {over && <Tag kind="bad">{t("policies.overQuota")}</Tag>}{" "}
          {!policy.enabled && <Tag>{t("policies.isOff")}</Tag>}
        </span>
        <small>
          {t("policies.counted", {
            limits: limits.length === 0 ? t("policies.unlimited") : limits.join(", "),
            down: words.bytes(counters.download_bytes),
            up: words.bytes(counters.upload_bytes),
            live: active,
          })}
        </small>
        {total > 0 && (
          <meter
            class="usage"
            aria-label={t("policies.quotaOf", { name })}
            max={total}
            high={total * 0.9}
            value={rolling.upload_bytes + rolling.download_bytes}
          />
        )}
      </span>
      <span class="actions">
        <Button label={t("common.edit")} name={t("policies.editOne", { name })} onPress={onEdit} />
        <Button label={t("common.reset")} name={t("policies.resetOne", { name })} onPress={onReset} />
        <Button
          label={t("common.remove")}
          name={t("policies.removeOne", { name })}
          kind="danger"
          onPress={onRemove}
        />
      </span>
    </li>
  );
}
