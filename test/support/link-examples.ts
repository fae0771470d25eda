export const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
export const common = { name: "My node", udp: true };

/** The worked examples of the share-links.md §6. */
export const EXAMPLES: readonly (readonly [link: string, node: Record<string, unknown>])[] = [
  [
    `vless://${UUID}@example.com:443?encryption=none&flow=xtls-rprx-vision&security=tls&sni=example.com&fp=chrome&type=tcp#My%20node`,
    {
      ...common,
      type: "vless",
      server: "example.com",
      port: 443,
      uuid: UUID,
      flow: "xtls-rprx-vision",
      tls: true,
      servername: "example.com",
      "client-fingerprint": "chrome",
    },
  ],
  [
    `vless://${UUID}@192.0.2.1:443?encryption=none&flow=xtls-rprx-vision&security=reality&sni=www.example.com&fp=chrome&pbk=YFpyXSpK3-6xop4X7dYhwbdZPujNvESsbEq24vgF0jw&sid=0123456789abcdef&type=tcp#My%20node`,
    {
      ...common,
      type: "vless",
      server: "192.0.2.1",
      port: 443,
      uuid: UUID,
      flow: "xtls-rprx-vision",
      tls: true,
      servername: "www.example.com",
      "client-fingerprint": "chrome",
      "reality-opts": {
        "public-key": "YFpyXSpK3-6xop4X7dYhwbdZPujNvESsbEq24vgF0jw",
        "short-id": "0123456789abcdef",
      },
    },
  ],
  [
    `vless://${UUID}@example.com:443?encryption=none&security=tls&sni=example.com&type=ws&host=example.com&path=%2Fws%3Fed%3D2048#My%20node`,
    {
      ...common,
      type: "vless",
      server: "example.com",
      port: 443,
      uuid: UUID,
      tls: true,
      servername: "example.com",
      network: "ws",
      "ws-opts": {
        path: "/ws",
        headers: { Host: "example.com" },
        "max-early-data": 2048,
        "early-data-header-name": "Sec-WebSocket-Protocol",
      },
    },
  ],
  [
    "anytls://letmein@example.com:443/?sni=example.com#My%20node",
    { ...common, type: "anytls", server: "example.com", port: 443, password: "letmein", sni: "example.com" },
  ],
  [
    "trojan://letmein@example.com:443?security=tls&sni=example.com&type=tcp#My%20node",
    { ...common, type: "trojan", server: "example.com", port: 443, password: "letmein", sni: "example.com" },
  ],
  [
    "ss://YWVzLTEyOC1nY206dGVzdA@192.0.2.1:8388#My%20node",
    { ...common, type: "ss", server: "192.0.2.1", port: 8388, cipher: "aes-128-gcm", password: "test" },
  ],
  [
    "ss://YWVzLTEyOC1nY206dGVzdA@192.0.2.1:8388/?plugin=obfs-local%3Bobfs%3Dhttp%3Bobfs-host%3Dexample.com#My%20node",
    {
      ...common,
      type: "ss",
      server: "192.0.2.1",
      port: 8388,
      cipher: "aes-128-gcm",
      password: "test",
      plugin: "obfs",
      "plugin-opts": { mode: "http", host: "example.com" },
    },
  ],
  [
    "ss://2022-blake3-aes-128-gcm:ABEiM0RVZneImaq7zN3u%2Fw%3D%3D@192.0.2.1:8388#My%20node",
    {
      ...common,
      type: "ss",
      server: "192.0.2.1",
      port: 8388,
      cipher: "2022-blake3-aes-128-gcm",
      password: "ABEiM0RVZneImaq7zN3u/w==",
    },
  ],
  [
    "hysteria2://letmein@example.com:443/?obfs=salamander&obfs-password=obfspass&sni=example.com#My%20node",
    {
      ...common,
      type: "hysteria2",
      server: "example.com",
      port: 443,
      password: "letmein",
      obfs: "salamander",
      "obfs-password": "obfspass",
      sni: "example.com",
    },
  ],
  [
    `tuic://${UUID}:letmein@example.com:443?congestion_control=bbr&udp_relay_mode=native&alpn=h3&sni=example.com#My%20node`,
    {
      ...common,
      type: "tuic",
      server: "example.com",
      port: 443,
      uuid: UUID,
      password: "letmein",
      sni: "example.com",
      alpn: ["h3"],
      "congestion-controller": "bbr",
      "udp-relay-mode": "native",
    },
  ],
  [
    "vmess://eyJ2IjoiMiIsInBzIjoiTXkgbm9kZSIsImFkZCI6ImV4YW1wbGUuY29tIiwicG9ydCI6IjQ0MyIsImlkIjoiYjgzMTM4MWQtNjMyNC00ZDUzLWFkNGYtOGNkYTQ4YjMwODExIiwiYWlkIjoiMCIsInNjeSI6ImF1dG8iLCJuZXQiOiJ3cyIsInR5cGUiOiJub25lIiwiaG9zdCI6ImV4YW1wbGUuY29tIiwicGF0aCI6Ii93cyIsInRscyI6InRscyIsInNuaSI6ImV4YW1wbGUuY29tIiwiYWxwbiI6IiIsImZwIjoiIn0=",
    {
      ...common,
      type: "vmess",
      server: "example.com",
      port: 443,
      uuid: UUID,
      alterId: 0,
      cipher: "auto",
      tls: true,
      servername: "example.com",
      network: "ws",
      "ws-opts": { path: "/ws", headers: { Host: "example.com" } },
    },
  ],
];
