import { useState } from "preact/hooks";
import type { Configs } from "#ui/api/types.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { type Fact, Facts } from "#ui/parts/facts.tsx";
import { Select } from "#ui/parts/inputs.tsx";
import { Rich } from "#ui/parts/rich.tsx";
import { saveFile } from "#ui/parts/save-file.ts";
import { Button, Fault, Page, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useResource, useWords } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import type { Theme } from "#ui/state/theme.ts";
import type { PlainKey, Words } from "#ui/words/words.ts";
import { LanguageSelect } from "./language-select.tsx";
import { RestoreDialog } from "./restore-dialog.tsx";
import { RunningSettings } from "./running-settings.tsx";
import { Version } from "./version.tsx";

const THEMES: readonly (readonly [Theme, PlainKey])[] = [
  ["auto", "settings.asSystem"],
  ["light", "settings.light"],
  ["dark", "settings.dark"],
];
/** Names of protocols are the same in every language. */
const PORTS = [
  ["mixed-port", (t: Words["t"]) => t("settings.mixed")],
  ["port", () => "HTTP"],
  ["socks-port", () => "SOCKS"],
  ["redir-port", (t: Words["t"]) => t("settings.redirect")],
  ["tproxy-port", () => "TPROXY"],
] as const;

export function SettingsPage() {
  const { t } = useWords();
  const configs = useResource<Configs>("configs");
  const { value, error, reload } = configs;
  return (
    <Page title={t("page.settings")}>
      <Fault text={error} />
      {value !== null && <RunningSettings configs={value} reload={reload} />}
      {value !== null && <Ports configs={value} />}
      <ThisPage />
      <Version />
      <Maintenance onReloaded={reload} />
    </Page>
  );
}

function ThisPage() {
  const { link, theme } = useEnvironment();
  const { t } = useWords();
  const chosen = useStore(theme.chosen);
  return (
    <Panel title={t("settings.thisPage")}>
      <div class="settings">
        <div class="setting">
          <LanguageSelect />
        </div>
        <div class="setting">
          <Select
            label={t("settings.colours")}
            value={chosen}
            options={THEMES.map(([value, name]) => [value, t(name)] as const)}
            onChange={(choice) => theme.choose(choice)}
          />
        </div>
        <div class="setting">
          <span>{t("settings.secretNote")}</span>
          <Button label={t("settings.forget")} onPress={() => link.lock()} />
        </div>
      </div>
    </Panel>
  );
}

function Ports({ configs }: { readonly configs: Configs }) {
  const { t } = useWords();
  const open = PORTS.filter(([key]) => configs[key] !== 0);
  const rows: readonly Fact[] = [
    ...open.map(([key, name]): Fact => [name(t), configs[key]]),
    [t("settings.listening"), configs["allow-lan"] ? configs["bind-address"] : t("settings.thisMachine")],
    ["TUN", configs.tun.enable ? configs.tun.stack : t("settings.off")],
  ];
  return (
    <Panel title={t("settings.ports")}>
      <Facts rows={rows} />
    </Panel>
  );
}

function Maintenance({ onReloaded }: { readonly onReloaded: () => Promise<void> }) {
  const { link } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  const [asking, setAsking] = useState(false);
  const [isRestoring, setRestoring] = useState(false);
  const reload = (): Promise<boolean> =>
    act(
      async () => {
        await link.send("PUT", "configs?force=true", { path: "", payload: "" });
        await onReloaded();
      },
      t("settings.notReloaded"),
      t("settings.reloaded"),
    );
  const backup = (): Promise<boolean> =>
    act(async () => {
      const file = await link.bytes("api/svc/backup");
      const day = new Date().toISOString().slice(0, 10);
      saveFile(`weir-${day}.backup`, "application/octet-stream", file);
    }, t("settings.noBackup"));
  return (
    <Panel title={t("settings.maintenance")}>
      <div class="actions">
        <Button label={t("settings.reload")} onPress={reload} />
        <Button label={t("settings.backup")} onPress={backup} />
        <Button label={t("restore.open")} onPress={() => setRestoring(true)} />
        <Button label={t("settings.restart")} kind="danger" onPress={() => setAsking(true)} />
      </div>
      <p class="note">
        <Rich text={t("settings.backupText")} />
      </p>
      {isRestoring && <RestoreDialog onClose={() => setRestoring(false)} />}
      {asking && (
        <Confirm
          title={t("settings.restartAsk")}
          text={t("settings.restartText")}
          action={t("settings.restart")}
          onAnswer={(yes) => {
            setAsking(false);
            if (yes)
              void act(
                () => link.send("POST", "restart"),
                t("settings.notRestarted"),
                t("settings.restarting"),
              );
          }}
        />
      )}
    </Panel>
  );
}
