/** Programs that speak one protocol each: trojan and shadowsocks-libev, with its plugins. */
import { type Cell, certificate, NAME, password, PATH } from "./cells.ts";
import type { Launch, Speaker } from "./speaker.ts";

function trojanLaunch(config: object): Launch {
  return {
    command: ["trojan", "-c", "{}/config.json"],
    files: {
      "config.json": JSON.stringify({ password: [password], log_level: 3, ...config }),
      "cert.pem": certificate.cert,
      "key.pem": certificate.key,
    },
  };
}

const isTrojan = ({ protocol, network, mux, reality, ech }: Cell): boolean =>
  protocol === "trojan" && network === "tcp" && mux === "none" && reality === null && !ech;

export const trojan: Speaker = {
  program: "trojan",
  version: ["--version"],
  server: (cell, port) =>
    isTrojan(cell)
      ? trojanLaunch({
          run_type: "server",
          local_addr: "127.0.0.1",
          local_port: port,
          remote_addr: "127.0.0.1",
          remote_port: 9,
          ssl: { cert: "{}/cert.pem", key: "{}/key.pem" },
        })
      : null,
  client: (cell, socksPort, port) =>
    isTrojan(cell)
      ? trojanLaunch({
          run_type: "client",
          local_addr: "127.0.0.1",
          local_port: socksPort,
          remote_addr: "127.0.0.1",
          remote_port: port,
          ssl: { verify: false, verify_hostname: false, sni: NAME },
        })
      : null,
};

const isSs = ({ protocol, cipher, mux, udp }: Cell): boolean =>
  protocol === "ss" && mux === "none" && udp !== "uot" && !cipher.startsWith("2022");

const V2RAY_PLUGIN = `server;host=${NAME};path=${PATH}`;
const PLUGINS = {
  none: [],
  "obfs-http": ["--plugin", "obfs-server", "--plugin-opts", "obfs=http"],
  "obfs-tls": ["--plugin", "obfs-server", "--plugin-opts", "obfs=tls"],
  "v2ray-plugin": ["--plugin", "ss-v2ray-plugin", "--plugin-opts", V2RAY_PLUGIN],
  "v2ray-plugin without mux": ["--plugin", "ss-v2ray-plugin", "--plugin-opts", `${V2RAY_PLUGIN};mux=0`],
};

export const shadowsocksLibev: Speaker = {
  program: "ss-server",
  version: [],
  server(cell, port) {
    if (!isSs(cell)) return null;
    const place = ["-s", "127.0.0.1", "-p", `${port}`, "-k", cell.key, "-m", cell.cipher];
    const kind = cell.plugin === "none" ? ["-u"] : PLUGINS[cell.plugin];
    return { command: ["ss-server", ...place, ...kind], files: {} };
  },
  client(cell, socksPort, port) {
    if (!isSs(cell) || cell.plugin !== "none") return null;
    const place = ["-s", "127.0.0.1", "-p", `${port}`, "-k", cell.key, "-m", cell.cipher, "-u"];
    return { command: ["ss-local", ...place, "-b", "127.0.0.1", "-l", `${socksPort}`], files: {} };
  },
};
