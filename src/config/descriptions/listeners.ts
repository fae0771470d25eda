/** Keys of listeners that several protocols share. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const listeners: Descriptions = {
  listeners: "Ports that clients connect to, beside those at the top level of the file.",
  "listeners.name": ["Name of the listener, for IN-NAME rules and the API.", "edge"],
  "listeners.type":
    "Protocol of the listener. Types that are known and not spoken are left out with a warning.",
  "listeners.listen": ["Address that it listens on; `::` is every address of both families.", "0.0.0.0"],
  "listeners.port": ["Port, or ports as `2000-2010,3000`; 0 is any free one.", "1080"],
  "listeners.rule": ["List of `sub-rules` that decides instead of `rules`.", "office"],
  "listeners.proxy": ["Proxy or group for everything that comes here, past the rules.", "DIRECT"],
  "listeners.users":
    "Accounts. Who is not among them is refused; how they are written depends on the protocol.",
  "users.username": ["Name of the user, for IN-USER rules and reports.", "alice"],
  "users.password": ["Password of the user.", "letmein"],
  "listeners.network": ["What it takes: tcp, udp, or both.", ["tcp", "udp"]],
  "listeners.acme": [
    "Names for which the certificate is fetched by ACME, in place of `certificate` and `private-key`; needs the top-level block `acme`.",
    ["edge.example.com"],
  ],
  "listeners.alpn": [
    "What clients may agree on inside TLS: all that the listener speaks over TCP where the key is missing. With `h3` XHTTP is served over HTTP/3, on UDP of the same port; with `h3` alone only there.",
    ["h3", "h2"],
  ],
  "allow-insecure": "Whether it may listen without TLS.",
  "ws-path": ["Path at which WebSocket and HTTPUpgrade clients are served.", "/ws"],
  "h2-config": "Serves HTTP/2 clients.",
  "h2-config.host": ["Names that clients may ask for.", ["www.example.com"]],
  "h2-config.path": ["Path that clients ask for.", "/"],
  "mux-option": "What is demanded of connections with many streams, which are understood in any case.",
  "mux-option.padding": "Whether clients that do not pad are refused.",
  fallbacks: "Web servers that clients are passed on to which are not of this protocol.",
  "fallbacks.name": ["Name that the client asked for.", "www.example.com"],
  "fallbacks.alpn": ["Protocol that was agreed on inside TLS.", "h2"],
  "fallbacks.path": ["Path of the client's request.", "/blog"],
  "fallbacks.dest": ["Web server, `host:port` or a port of this machine.", "127.0.0.1:8080"],
  "max-idle-time": ["Milliseconds after which a silent connection ends.", 30000],
  "authentication-timeout": ["Milliseconds that a client has to show who it is.", 3000],
};
