import { useState } from "preact/hooks";
import type { ManagedUser, UserDetail, UserUsage } from "#ui/api/admin-types.ts";
import { bytesText, counted, countText, rateText } from "#ui/format.ts";
import { CopyButton } from "#ui/parts/copy.tsx";
import { Dialog } from "#ui/parts/dialog.tsx";
import { type Fact, Facts } from "#ui/parts/facts.tsx";
import type { PlotData } from "#ui/parts/plot-data.ts";
import { clockText, Plot } from "#ui/parts/plot.tsx";
import { QrCode } from "#ui/parts/qr.tsx";
import { RATES } from "#ui/parts/throughput-plot.tsx";
import { Button, Fault, Tag } from "#ui/parts/small.tsx";
import { rateLimitText } from "#ui/quantity.ts";
import { useAdminResource } from "#ui/state/context.ts";
import { withPast } from "#ui/state/usage-history.ts";

interface Props {
  /** As the list has it now. */
  readonly user: ManagedUser;
  /** Since the page opened. */
  readonly usage: PlotData;
  readonly onEdit: () => unknown;
  readonly onTurn: (enabled: boolean) => unknown;
  readonly onAct: (action: string) => unknown;
  readonly onDelete: () => unknown;
  readonly onClose: () => void;
}

const NO_PAST: UserUsage = { step_seconds: 1, steps: [] };

/** One user: state, usage, link, and what can be done. The link is asked for anew whenever the user changes. */
export function UserDetails({ user, usage, onEdit, onTurn, onAct, onDelete, onClose }: Props) {
  const path = `users/${encodeURIComponent(user.id)}`;
  const past = useAdminResource<UserUsage>(`${path}/usage`, []);
  const detail = useAdminResource<UserDetail>(`${path}?online=true`, [
    user.revision,
    user.active_connections,
  ]);
  const link = detail.value?.subscription_url;
  const shown = withPast(past.value ?? NO_PAST, usage);
  const [first] = shown.times;
  const last = `${rateText(usage.down.at(-1) ?? 0)} down, ${rateText(usage.up.at(-1) ?? 0)} up`;
  return (
    <Dialog title={user.name} onClose={onClose}>
      <Fault text={detail.error ?? past.error} />
      <About user={user} detail={detail.value} />
      {link === undefined ? (
        <p class="note">No link: the user is disabled, or the listener can have none.</p>
      ) : (
        <Link url={link} />
      )}
      <Plot
        data={shown}
        look={RATES}
        label={`Usage of ${user.name}. ${last}`}
        note={
          first === undefined
            ? "nothing yet"
            : `since ${clockText(first)}, in steps of five minutes up to this page`
        }
      />
      <div class="actions">
        <Button label="Edit" onPress={onEdit} />
        <Button label={user.enabled ? "Disable" : "Enable"} onPress={() => onTurn(!user.enabled)} />
        <Button label="New link" onPress={() => onAct("rotate-subscription")} />
        <Button label="Reset counters" onPress={() => onAct("reset-traffic")} />
        <Button label="Delete" kind="danger" onPress={onDelete} />
      </div>
    </Dialog>
  );
}

function Link({ url }: { readonly url: string }) {
  const [code, setCode] = useState(false);
  return (
    <>
      <p class="secret">
        <code>{url}</code>
        <CopyButton text={url} what="Link" />
        <Button label={code ? "Hide QR" : "QR code"} onPress={() => setCode(!code)} />
      </p>
      {code && <QrCode text={url} label="QR code of the subscription link" />}
    </>
  );
}

function About({ user, detail }: { readonly user: ManagedUser; readonly detail: UserDetail | null }) {
  const { quota } = user;
  const online = detail?.online_ips ?? [];
  const limits = [
    user.download_bps && `${rateLimitText(user.download_bps)} down`,
    user.upload_bps && `${rateLimitText(user.upload_bps)} up`,
    user.connection_limit && counted(user.connection_limit, "connection"),
    user.ip_limit && counted(user.ip_limit, "address", "addresses"),
  ].filter(Boolean);
  const rows: readonly Fact[] = [
    ["Listener", `${user.inbound} (${user.type})`],
    ["Moved", `${bytesText(user.download_bytes)} down, ${bytesText(user.upload_bytes)} up`],
    ["Connections", countText(user.active_connections)],
    ["Limits", limits.join(", ")],
    ["Expires", user.expires_at === undefined ? "" : dateText(user.expires_at)],
    ["Comes from", online.map(({ ip }) => ip).join(", ")],
  ];
  return (
    <>
      <p>
        <StateTag user={user} />
      </p>
      <Facts rows={rows} />
      {quota !== undefined && (
        <div>
          <p class="status">
            {bytesText(quota.used_bytes)} of {bytesText(quota.total_bytes)} used
            {quota.resets_at !== undefined && `, begins anew ${dateText(quota.resets_at)}`}
          </p>
          <meter
            class="usage"
            aria-label="Quota"
            max={quota.total_bytes}
            high={quota.total_bytes * 0.9}
            value={quota.used_bytes}
          />
        </div>
      )}
    </>
  );
}

export function StateTag({ user }: { readonly user: ManagedUser }) {
  const state = user.status ?? (user.enabled ? "active" : "disabled");
  return <Tag kind={state === "active" ? "yes" : state === "disabled" ? "" : "bad"}>{state}</Tag>;
}

const dateText = (unixMs: number): string => new Date(unixMs).toLocaleString();
