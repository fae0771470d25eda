import type { PolicyStatus } from "#ui/api/governance-types.ts";
import { bytesText, countText } from "#ui/format.ts";
import { Button, Empty, Tag } from "#ui/parts/small.tsx";
import { rateLimitText } from "#ui/quantity.ts";
import { dimensionOf, titleOf } from "#ui/state/policy-document.ts";

interface LinesProps {
  readonly enabled: boolean;
  readonly policies: readonly PolicyStatus[];
  readonly onEdit: (status: PolicyStatus) => unknown;
  readonly onReset: (status: PolicyStatus) => unknown;
  readonly onRemove: (status: PolicyStatus) => unknown;
}

/** The policies with what they have counted. */
export function PolicyLines({ enabled, policies, onEdit, onReset, onRemove }: LinesProps) {
  if (policies.length === 0)
    return (
      <Empty title={enabled ? "No policies" : "Traffic control is off"}>
        Policies count and limit what devices, rules, nodes and groups use.
      </Empty>
    );
  return (
    <ul class="lines">
      {policies.map((status) => (
        <PolicyLine
          key={status.policy.id}
          status={status}
          onEdit={() => onEdit(status)}
          onReset={() => onReset(status)}
          onRemove={() => onRemove(status)}
        />
      ))}
    </ul>
  );
}

interface LineProps {
  readonly status: PolicyStatus;
  readonly onEdit: () => unknown;
  readonly onReset: () => unknown;
  readonly onRemove: () => unknown;
}

function PolicyLine({ status, onEdit, onReset, onRemove }: LineProps) {
  const { policy, counters, rolling, active_connections: active, over_quota: over } = status;
  const { total_bytes: total = 0 } = policy.quota;
  const limits = [
    policy.download_bps && `down ${rateLimitText(policy.download_bps)}`,
    policy.upload_bps && `up ${rateLimitText(policy.upload_bps)}`,
    total > 0 && `${bytesText(rolling.upload_bytes + rolling.download_bytes)} of ${bytesText(total)}`,
  ].filter(Boolean);
  return (
    <li class="line wrap">
      <span class="line-main">
        <span class="text">
          {titleOf(status)} <Tag>{dimensionOf(status)}</Tag> {over && <Tag kind="bad">over quota</Tag>}{" "}
          {!policy.enabled && <Tag>off</Tag>}
        </span>
        <small>
          {limits.length === 0 ? "counted, not limited" : limits.join(", ")} ·{" "}
          {bytesText(counters.download_bytes)} down, {bytesText(counters.upload_bytes)} up,{" "}
          {countText(active)} live
        </small>
        {total > 0 && (
          <meter
            class="usage"
            aria-label={`Quota of ${titleOf(status)}`}
            max={total}
            high={total * 0.9}
            value={rolling.upload_bytes + rolling.download_bytes}
          />
        )}
      </span>
      <span class="actions">
        <Button label="Edit" name={`Edit ${titleOf(status)}`} onPress={onEdit} />
        <Button label="Reset" name={`Reset ${titleOf(status)}`} onPress={onReset} />
        <Button label="Remove" name={`Remove ${titleOf(status)}`} kind="danger" onPress={onRemove} />
      </span>
    </li>
  );
}
