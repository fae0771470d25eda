import { useState } from "preact/hooks";
import { LOG_LEVELS, type Configs } from "#ui/api/types.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { type Fact, Facts } from "#ui/parts/facts.tsx";
import { ModeChoice } from "#ui/parts/mode.tsx";
import { Select, Switch } from "#ui/parts/inputs.tsx";
import { Button, Fault, Page, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useResource } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import type { Theme } from "#ui/state/theme.ts";

const LEVELS = [...LOG_LEVELS, "silent"].map((level) => [level, level] as const);
const THEMES: readonly (readonly [Theme, string])[] = [
  ["auto", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];
const SWITCHES = [
  ["allow-lan", "Let other machines use the proxy"],
  ["ipv6", "Use IPv6"],
  ["tcp-concurrent", "Try all addresses of a name at once"],
  ["unified-delay", "Measure delays without the handshake"],
  ["sniffing", "Read names from the first bytes"],
] as const;
const PORTS = [
  ["mixed-port", "Mixed (HTTP and SOCKS)"],
  ["port", "HTTP"],
  ["socks-port", "SOCKS"],
  ["redir-port", "Redirect"],
  ["tproxy-port", "TPROXY"],
] as const;

export function SettingsPage() {
  const configs = useResource<Configs>("configs");
  const { value, error, reload } = configs;
  return (
    <Page title="Settings">
      <Fault text={error} />
      {value !== null && <Running configs={value} reload={reload} />}
      {value !== null && <Ports configs={value} />}
      <ThisPage />
      <Upkeep onReloaded={reload} />
    </Page>
  );
}

interface RunningProps {
  readonly configs: Configs;
  readonly reload: () => Promise<void>;
}

function Running({ configs, reload }: RunningProps) {
  const { link } = useEnvironment();
  const act = useAction();
  const change = (fragment: Partial<Configs>, what: string): Promise<boolean> =>
    act(
      async () => {
        await link.send("PATCH", "configs", fragment);
        await reload();
      },
      `${what} was not changed`,
      `${what} changed`,
    );
  return (
    <Panel title="Running settings">
      <p class="note">They last until the next reload or restart; the configuration file stays as it is.</p>
      <div class="settings">
        <div class="setting">
          <span>Mode</span>
          <ModeChoice mode={configs.mode} onChanged={reload} />
        </div>
        <div class="setting">
          <Select
            label="Log level"
            value={configs["log-level"]}
            options={LEVELS as readonly (readonly [Configs["log-level"], string])[]}
            onChange={(level) => change({ "log-level": level }, "Log level")}
          />
        </div>
        {SWITCHES.map(([key, label]) => (
          <div key={key} class="setting">
            <Switch label={label} on={configs[key]} onChange={(on) => change({ [key]: on }, key)} />
          </div>
        ))}
      </div>
    </Panel>
  );
}

function ThisPage() {
  const { link, theme } = useEnvironment();
  const chosen = useStore(theme.chosen);
  return (
    <Panel title="This page">
      <div class="settings">
        <div class="setting">
          <Select
            label="Colours"
            value={chosen}
            options={THEMES}
            onChange={(choice) => theme.choose(choice)}
          />
        </div>
        <div class="setting">
          <span>The secret is kept in this page only, until it is reloaded.</span>
          <Button label="Forget the secret" onPress={() => link.lock()} />
        </div>
      </div>
    </Panel>
  );
}

function Ports({ configs }: { readonly configs: Configs }) {
  const open = PORTS.filter(([key]) => configs[key] !== 0);
  const rows: readonly Fact[] = [
    ...open.map(([key, name]): Fact => [name, configs[key]]),
    ["Listening on", configs["allow-lan"] ? configs["bind-address"] : "this machine only"],
    ["TUN", configs.tun.enable ? configs.tun.stack : "off"],
  ];
  return (
    <Panel title="Ports">
      <Facts rows={rows} />
    </Panel>
  );
}

function Upkeep({ onReloaded }: { readonly onReloaded: () => Promise<void> }) {
  const { link } = useEnvironment();
  const act = useAction();
  const [asking, setAsking] = useState(false);
  const reload = (): Promise<boolean> =>
    act(
      async () => {
        await link.send("PUT", "configs?force=true", { path: "", payload: "" });
        await onReloaded();
      },
      "The old configuration goes on",
      "The configuration was read again",
    );
  return (
    <Panel title="Upkeep">
      <div class="actions">
        <Button label="Read the configuration again" onPress={reload} />
        <Button label="Restart" kind="danger" onPress={() => setAsking(true)} />
      </div>
      {asking && (
        <Confirm
          title="Restart the program?"
          text="All connections are cut; the page comes back by itself."
          action="Restart"
          onAnswer={(yes) => {
            setAsking(false);
            if (yes) void act(() => link.send("POST", "restart"), "It was not restarted", "Restarting");
          }}
        />
      )}
    </Panel>
  );
}
