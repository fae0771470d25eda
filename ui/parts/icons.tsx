/** Line drawings on a grid of 24; decoration, which screen readers skip. */
const PATHS = {
  overview: "M4 19V9m5 10V5m5 14v-7m5 7V8",
  connections: "M4 8h12m0 0-4-4m4 4-4 4M20 16H8m0 0 4-4m-4 4 4 4",
  groups: "M12 5v4m0 0-6 5m6-5 6 5M6 14v5m12-5v5M12 9v10",
  rules: "M9 6h11M9 12h11M9 18h11M4 6h1m-1 6h1m-1 6h1",
  usage: "M4 20h16M7 20v-6m5 6V6m5 14v-9",
  users:
    "M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7Zm-6 9c0-4 2.500-6 6-6s6 2 6 6M16 4.500a3.500 3.500 0 0 1 0 6.500m2 3c2 .800 3 2.800 3 6",
  inbounds: "M4 12h9m0 0-4-4m4 4-4 4M14 4h6v16h-6",
  nodes: "M5 4h14v6H5ZM5 14h14v6H5ZM8 7h.5M8 17h.5M12 7h4M12 17h4",
  audit: "M6 3h9l4 4v14H6ZM15 3v4h4M9 12l2 2 4-4M9 18h7",
  logs: "M5 5h14M5 9.700h9M5 14.300h14M5 19h7",
  dns: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm-9 9h18M12 3c5 5 5 13 0 18-5-5-5-13 0-18Z",
  explain: "M9 9a3 3 0 1 1 4 3c-1 .600-1 1.200-1 2.500M12 18v.5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z",
  tokens: "M8 11a4 4 0 1 0 0-.01M11.500 13 20 4.500M17 7.500l2.500 2.500M14 10.500l2 2",
  editor: "M8 6 3 12l5 6m8-12 5 6-5 6M14 4l-4 16",
  settings: "M4 7h9m4 0h3M4 17h3m4 0h9M15 5v4M9 15v4",
  close: "M6 6l12 12M18 6 6 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  check: "M5 12.500 10 17 19 7",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
