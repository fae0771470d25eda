/** The Controller: its addresses, its access rules, the dashboard that it serves. */
import {
  block,
  Fault,
  filePath,
  flag,
  httpUrl,
  leftOut,
  list,
  scalar,
  secret,
  show,
  text,
  unsetAs,
} from "#core/fields.ts";
import { parseHostPort } from "#net/address/address-fields.ts";
import { mark } from "./general.ts";

/** `host:port` as written, or empty for off. */
const listenAddress = () =>
  scalar({ type: "string" }, (source, raw) => {
    if (source === "" || parseHostPort(source) !== null) return source;
    return new Fault(`expected host:port such as 127.0.0.1:9090 or :9090, got ${show(raw)}`);
  });

const pipeName = () =>
  scalar({ type: "string" }, (source, raw) => {
    if (source === "" || source.startsWith("\\\\.\\pipe\\")) return source;
    return new Fault(String.raw`expected a name that begins with \\.\pipe\, got ${show(raw)}`);
  });

const localName = () =>
  scalar({ type: "string" }, (source, raw) => {
    const parts = source.split(/[/\\]/);
    if (!parts.includes("..") && parts[0] !== "" && !/^[a-z]:/i.test(source)) return source;
    if (source === "") return source;
    return new Fault(`expected a folder below external-ui, without .. or a root, got ${show(raw)}`);
  });

const UI_ARCHIVE = "https://github.com/MetaCubeX/metacubexd/archive/refs/heads/gh-pages.zip";

export const CONTROLLER = {
  "external-controller": leftOut(listenAddress()).default(""),
  "external-controller-tls": leftOut(listenAddress()).default(""),
  "external-controller-unix": text().default(""),
  "external-controller-pipe": pipeName().default(""),
  "external-controller-routing-mark": mark().default(0),
  "external-controller-cors": block({
    "allow-origins": list(text()).default(["*"]),
    "allow-private-network": flag().default(true),
  }).prefault({}),
  secret: secret().default(""),
  "external-ui": filePath().default(""),
  "external-ui-name": localName().default(""),
  "external-ui-url": unsetAs(httpUrl(), UI_ARCHIVE).default(UI_ARCHIVE),
  "external-doh-server": text().default(""),
};
