import type { FlagTable } from "./flags.ts";

const OVERRIDE = "CLASH_OVERRIDE_";

/** Where the configuration comes from: what every command that reads one has. */
export const SOURCE_FLAGS = {
  d: { kind: "text", value: "DIR", env: "CLASH_HOME_DIR", help: "home directory" },
  f: {
    kind: "text",
    value: "FILE",
    env: "CLASH_CONFIG_FILE",
    help: "configuration file, - for standard input",
  },
  config: { kind: "text", value: "BASE64", env: "CLASH_CONFIG_STRING", help: "configuration text in base64" },
} as const satisfies FlagTable;

/** The flags of the main job (`controller-api.md` §1.1). */
export const RUN_FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  embedded: { kind: "switch", help: "where no file is named, run the built-in default and write nothing" },
  t: { kind: "switch", help: "check the configuration and exit" },
  all: { kind: "switch", help: "with -t: every warning, also where many say the same" },
  v: { kind: "switch", long: "version", help: "print the version and exit" },
  h: { kind: "switch", long: "help", help: "print this help" },
  m: { kind: "switch", help: "geodata-mode is true where the file does not say" },
  "ext-ctl": {
    kind: "text",
    value: "ADDR",
    env: `${OVERRIDE}EXTERNAL_CONTROLLER`,
    help: "external-controller",
  },
  "ext-ctl-tls": {
    kind: "text",
    value: "ADDR",
    env: `${OVERRIDE}EXTERNAL_CONTROLLER_TLS`,
    help: "external-controller-tls",
  },
  "ext-ctl-unix": {
    kind: "text",
    value: "PATH",
    env: `${OVERRIDE}EXTERNAL_CONTROLLER_UNIX`,
    help: "external-controller-unix",
  },
  "ext-ctl-pipe": {
    kind: "text",
    value: "NAME",
    env: `${OVERRIDE}EXTERNAL_CONTROLLER_PIPE`,
    help: "external-controller-pipe",
  },
  "ext-ctl-routing-mark": {
    kind: "text",
    value: "MARK",
    env: `${OVERRIDE}EXTERNAL_CONTROLLER_ROUTING_MARK`,
    help: "external-controller-routing-mark",
  },
  "ext-ui": { kind: "text", value: "DIR", env: `${OVERRIDE}EXTERNAL_UI_DIR`, help: "external-ui" },
  secret: { kind: "text", value: "SECRET", env: `${OVERRIDE}SECRET`, help: "secret of the Controller" },
  "sign-in-link": {
    kind: "switch",
    help: "log a link that signs in at the dashboard, once, within ten minutes; on a terminal it is always shown",
  },
  "post-up": {
    kind: "text",
    value: "COMMAND",
    env: "CLASH_POST_UP",
    help: "shell command after the start; its failure ends weir",
  },
  "post-down": {
    kind: "text",
    value: "COMMAND",
    env: "CLASH_POST_DOWN",
    help: "shell command after the end",
  },
};
