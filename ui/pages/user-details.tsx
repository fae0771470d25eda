import { useMemo, useState } from "preact/hooks";
import type { ManagedUser, UserDetail, UserUsage } from "#ui/api/admin-types.ts";
import { CopyButton } from "#ui/parts/copy.tsx";
import { Dialog } from "#ui/parts/dialog.tsx";
import { type Fact, Facts } from "#ui/parts/facts.tsx";
import type { PlotData } from "#ui/parts/plot-data.ts";
import { Plot } from "#ui/parts/plot.tsx";
import { QrCode } from "#ui/parts/qr.tsx";
import { ShareLink } from "#ui/parts/share-link.tsx";
import { ratesLook } from "#ui/parts/throughput-plot.tsx";
import { Button, Fault, Tag } from "#ui/parts/small.tsx";
import { rateLimitText } from "#ui/quantity.ts";
import { useAction, useAdminResource, useEnvironment, useWords } from "#ui/state/context.ts";
import { shareLinksOf } from "#ui/state/share-links.ts";
import { withPast } from "#ui/state/usage-history.ts";
import type { Words } from "#ui/words/words.ts";
import { UserHistory } from "./user-history.tsx";

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
  const words = useWords();
  const { t } = words;
  const look = useMemo(() => ratesLook(words), [words]);
  const path = `users/${encodeURIComponent(user.id)}`;
  const past = useAdminResource<UserUsage>(`${path}/usage`, []);
  const detail = useAdminResource<UserDetail>(`${path}?online=true&by=node`, [
    user.revision,
    user.active_connections,
  ]);
  const link = detail.value?.subscription_url;
  const shown = withPast(past.value ?? NO_PAST, usage);
  const [first] = shown.times;
  const last = t("common.downUp", {
    down: words.rate(usage.down.at(-1) ?? 0),
    up: words.rate(usage.up.at(-1) ?? 0),
  });
  return (
    <Dialog title={user.name} onClose={onClose}>
      <Fault text={detail.error ?? past.error} />
      <About user={user} detail={detail.value} />
      {link === undefined ? <p class="note">{t("user.noLink")}</p> : <Link url={link} />}
      {detail.value !== null && link !== undefined && <ShareLinks key={link} user={detail.value} />}
      <Plot
        data={shown}
        look={look}
        label={t("user.plot", { name: user.name, text: last })}
        note={first === undefined ? t("user.nothingYet") : sinceText(words, past.value, first)}
      />
      {past.value !== null && !isOfFleet(past.value) && <UserHistory key={user.id} user={user} />}
      <div class="actions">
        <Button label={t("common.edit")} onPress={onEdit} />
        <Button
          label={user.enabled ? t("user.disable") : t("user.enable")}
          onPress={() => onTurn(!user.enabled)}
        />
        <Button label={t("user.newLink")} onPress={() => onAct("rotate-subscription")} />
        <Button label={t("user.resetCounters")} onPress={() => onAct("reset-traffic")} />
        <Button label={t("common.delete")} kind="danger" onPress={onDelete} />
      </div>
    </Dialog>
  );
}

/** Of a whole fleet the steps of the past are hours, and there are no days. */
function isOfFleet({ step_seconds: width }: UserUsage): boolean {
  return width >= 3600;
}

function sinceText(words: Words, past: UserUsage | null, first: number): string {
  return words.t(past !== null && isOfFleet(past) ? "nodes.sinceHours" : "user.since", {
    time: words.clock(first),
  });
}

function Link({ url }: { readonly url: string }) {
  const { t } = useWords();
  const [code, setCode] = useState(false);
  return (
    <>
      <p class="secret">
        <code>{url}</code>
        <CopyButton text={url} label={t("user.copyLink")} done={t("user.linkCopied")} />
        <Button label={code ? t("user.hideQr") : t("user.qr")} onPress={() => setCode(!code)} />
      </p>
      {code && <QrCode text={url} label={t("user.qrLabel")} />}
    </>
  );
}

/** What clients read there, for those that take a link by hand or by their camera. */
function ShareLinks({ user }: { readonly user: UserDetail }) {
  const { link } = useEnvironment();
  const { t } = useWords();
  const act = useAction();
  const [links, setLinks] = useState<readonly string[]>([]);
  const show = (): Promise<boolean> =>
    act(async () => setLinks(await shareLinksOf(link, user)), t("user.noLink"));
  if (links.length === 0)
    return (
      <p>
        <Button label={t("setup.shareLink")} onPress={show} />
      </p>
    );
  return (
    <>
      {links.map((one) => (
        <ShareLink key={one} text={one} />
      ))}
    </>
  );
}

function About({ user, detail }: { readonly user: ManagedUser; readonly detail: UserDetail | null }) {
  const words = useWords();
  const { t } = words;
  const { quota } = user;
  const online = detail?.online_ips ?? [];
  const [used, total] = [words.bytes(quota?.used_bytes ?? 0), words.bytes(quota?.total_bytes ?? 0)];
  const limits = [
    user.download_bps && t("user.rateDown", { rate: rateLimitText(user.download_bps) }),
    user.upload_bps && t("user.rateUp", { rate: rateLimitText(user.upload_bps) }),
    user.connection_limit && t("common.connections", { count: user.connection_limit }),
    user.ip_limit && t("user.addresses", { count: user.ip_limit }),
  ].filter(Boolean);
  const rows: readonly Fact[] = [
    [t("common.listener"), t("user.onListener", { listener: user.inbound, type: user.type })],
    [
      t("user.moved"),
      t("common.downUp", { down: words.bytes(user.download_bytes), up: words.bytes(user.upload_bytes) }),
    ],
    [t("page.connections"), words.count(user.active_connections)],
    [t("user.limits"), limits.join(", ")],
    [
      t("user.note"),
      user.note === undefined ? (
        ""
      ) : (
        <span class="written" dir="auto">
          {user.note}
        </span>
      ),
    ],
    [t("user.expires"), user.expires_at === undefined ? "" : words.moment(user.expires_at)],
    [
      t("user.from"),
      online.map(({ ip, node }) => (node === undefined ? ip : t("nodes.addressOn", { ip, node }))).join(", "),
    ],
  ];
  return (
    <>
      <p class="tags">
        <StateTag user={user} />
        {user.labels?.map((label) => (
          <Tag key={label}>{label}</Tag>
        ))}
      </p>
      <Facts rows={rows} />
      {quota !== undefined && (
        <div>
          <p class="status">
            {quota.resets_at === undefined
              ? t("user.quotaUsed", { used, total })
              : t("user.quotaUsedUntil", { used, total, time: words.moment(quota.resets_at) })}
          </p>
          <meter
            class="usage"
            aria-label={t("user.quota")}
            max={quota.total_bytes}
            high={quota.total_bytes * 0.9}
            value={quota.used_bytes}
          />
        </div>
      )}
    </>
  );
}

const STATES = {
  active: "user.active",
  disabled: "user.disabled",
  expired: "user.expired",
  limited: "user.limited",
} as const;

export function StateTag({ user }: { readonly user: ManagedUser }) {
  const { t } = useWords();
  const state = user.status ?? (user.enabled ? "active" : "disabled");
  return <Tag kind={state === "active" ? "yes" : state === "disabled" ? "" : "bad"}>{t(STATES[state])}</Tag>;
}
