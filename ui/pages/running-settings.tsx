import { useEffect, useState } from "preact/hooks";
import type { Json } from "#ui/api/setup-types.ts";
import { LOG_LEVELS, type Configs, type ProcessMode } from "#ui/api/types.ts";
import { Input, Select, Switch } from "#ui/parts/inputs.tsx";
import { ModeChoice } from "#ui/parts/mode.tsx";
import { Button, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { editsOf, fragmentOf, refusalOf, valueOf, type Setting } from "#ui/state/running-settings.ts";
import { useStore } from "#ui/state/store.ts";
import { type PlainKey, WordedError } from "#ui/words/words.ts";
import { ChangeDialog } from "./change-dialog.tsx";

const LEVELS = [...LOG_LEVELS, "silent" as const].map((level) => [level, level] as const);
const FINDING = [
  ["off", "running.process.off"],
  ["strict", "running.process.strict"],
  ["always", "running.process.always"],
] as const satisfies readonly (readonly [ProcessMode, PlainKey])[];
const SWITCHES = [
  ["allow-lan", "settings.allowLan"],
  ["ipv6", "settings.ipv6"],
  ["tcp-concurrent", "settings.tcpConcurrent"],
  ["unified-delay", "settings.unifiedDelay"],
  ["sniffing", "settings.sniffing"],
  ["tun", "settings.tun"],
] as const;
const TEXTS = [
  ["bind-address", "running.bindAddress"],
  ["interface-name", "running.interfaceName"],
] as const;
const PORTS = ["mixed-port", "port", "socks-port", "redir-port", "tproxy-port"] as const;
const MOST_PORT = 65_535;

interface Props {
  readonly configs: Configs;
  readonly reload: () => Promise<void>;
}

/** What can be changed while the program runs, as it runs; and into the file where that is wanted. */
export function RunningSettings({ configs, reload }: Props) {
  const { t } = useWords();
  const { change, note } = useChange(reload);
  return (
    <Panel title={t("settings.running")}>
      <p class="note">{t("settings.runningText")}</p>
      <div class="settings">
        <div class="setting">
          <span>{t("mode.label")}</span>
          <ModeChoice
            mode={configs.mode}
            onChanged={async (mode) => {
              note("mode", mode);
              await reload();
            }}
          />
        </div>
        <div class="setting">
          <Select
            label={t("settings.logLevel")}
            value={configs["log-level"]}
            options={LEVELS}
            onChange={(level) => change("log-level", level, t("settings.logLevel"))}
          />
        </div>
        <div class="setting">
          <Select
            label={t("running.findProcess")}
            value={configs["find-process-mode"]}
            options={FINDING.map(([mode, name]) => [mode, t(name)] as const)}
            onChange={(mode) => change("find-process-mode", mode, t("running.findProcess"))}
          />
        </div>
        {SWITCHES.map(([key, label]) => (
          <div key={key} class="setting">
            <Switch
              label={t(label)}
              on={valueOf(configs, key) === true}
              onChange={(on) => change(key, on, key === "tun" ? "TUN" : t(label))}
            />
          </div>
        ))}
        {TEXTS.map(([key, label]) => (
          <TextSetting
            key={key}
            label={t(label)}
            value={configs[key]}
            onSet={(text) => change(key, text, t(label))}
          />
        ))}
        {PORTS.map((key) => (
          <TextSetting
            key={key}
            label={t("running.portOf", { name: key === "port" ? "http" : key.replace("-port", "") })}
            value={String(configs[key])}
            onSet={(text) => change(key, text, key)}
          />
        ))}
      </div>
      <Keep onKept={reload} />
    </Panel>
  );
}

/** Changes one, reads it back, and says where the program does not run by it. */
function useChange(reload: () => Promise<void>) {
  const { link, unkept } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  const note = (setting: Setting, value: Json): void =>
    unkept.set(new Map([...unkept.value, [setting, value]]));
  const change = (setting: Setting, asked: Json, what: string): Promise<boolean> =>
    act(
      async () => {
        const value = setting.endsWith("port") && typeof asked === "string" ? portOf(asked) : asked;
        try {
          await link.send("PATCH", "configs", fragmentOf(setting, value));
          const configs = await link.get<Configs>("configs");
          if (valueOf(configs, setting) !== value) throw refusalOf(setting);
        } finally {
          await reload();
        }
        note(setting, value);
      },
      t("settings.notChanged", { what }),
      t("settings.changed", { what }),
    );
  return { change, note };
}

/** Throws `WordedError`. */
function portOf(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text.trim()) && port <= MOST_PORT) return port;
  throw new WordedError((t) => t("running.badPort"));
}

interface TextProps {
  readonly label: string;
  /** The running one. */
  readonly value: string;
  readonly onSet: (text: string) => unknown;
}

function TextSetting({ label, value, onSet }: TextProps) {
  const { t } = useWords();
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <form
      class="setting"
      onSubmit={(event) => {
        event.preventDefault();
        void onSet(text);
      }}
    >
      <Input label={label} value={text} onInput={setText} />
      <Button
        label={t("running.set")}
        name={t("running.setOne", { name: label })}
        disabled={text === value}
      />
    </form>
  );
}

/** What was changed here goes into the file, too, after a look at it. */
function Keep({ onKept }: { readonly onKept: () => Promise<void> }) {
  const { unkept } = useEnvironment();
  const { t } = useWords();
  const changes = useStore(unkept);
  const [isOpen, setOpen] = useState(false);
  const [edits, setEdits] = useState(() => editsOf(changes));
  if (changes.size === 0 && !isOpen) return null;
  const open = (): void => {
    setEdits(editsOf(changes));
    setOpen(true);
  };
  return (
    <div class="actions">
      <p class="note">{t("running.unkept", { names: [...changes.keys()].join(", ") })}</p>
      <Button label={t("running.keep")} onPress={open} />
      {isOpen && (
        <ChangeDialog
          title={t("running.keep")}
          edits={edits}
          onChanged={async () => {
            unkept.set(new Map());
            await onKept();
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </div>
  );
}
