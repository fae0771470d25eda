/**
 * The first version of the fleet's schema: tables. Who may read which rows is below each; what is changed goes through
 * the functions of `functions.ts` alone.
 */
export const TABLES = `
CREATE TABLE weir.listener (
  tag text PRIMARY KEY,
  id text NOT NULL UNIQUE,
  protocol text NOT NULL,
  revision bigint NOT NULL CHECK (revision > 0)
);

CREATE TABLE weir.app_user (
  id uuid PRIMARY KEY,
  listener text NOT NULL REFERENCES weir.listener (tag) ON DELETE CASCADE,
  name text NOT NULL,
  credential text NOT NULL,
  flow text NOT NULL,
  enabled boolean NOT NULL,
  limits jsonb NOT NULL,
  generation integer NOT NULL CHECK (generation > 0),
  token_hash bytea NOT NULL UNIQUE,
  token_sealed bytea NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX app_user_listener ON weir.app_user (listener);

-- One row a revision: a writer holds the listener's row until it commits, so revisions become visible in their order.
CREATE TABLE weir.change (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  listener text NOT NULL REFERENCES weir.listener (tag) ON DELETE CASCADE,
  revision bigint NOT NULL,
  user_id uuid,
  kind text NOT NULL,
  UNIQUE (listener, revision)
);

CREATE TABLE weir.audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  login name NOT NULL,
  node text NOT NULL,
  listener text NOT NULL,
  user_id uuid,
  user_name text,
  kind text NOT NULL
);

CREATE TABLE weir.usage_total (
  user_id uuid NOT NULL REFERENCES weir.app_user (id) ON DELETE CASCADE,
  generation integer NOT NULL,
  upload bigint NOT NULL,
  download bigint NOT NULL,
  PRIMARY KEY (user_id, generation)
);

CREATE TABLE weir.node (
  id uuid PRIMARY KEY,
  name text NOT NULL UNIQUE,
  login name NOT NULL,
  address text NOT NULL,
  labels jsonb NOT NULL,
  version text NOT NULL,
  epoch bigint NOT NULL,
  instance uuid NOT NULL,
  seen_at timestamptz NOT NULL,
  applied jsonb NOT NULL,
  connections integer NOT NULL,
  draining boolean NOT NULL
);

-- What a login that is no administrator may: the listener '*' stands for all.
CREATE TABLE weir.access (
  login name NOT NULL,
  listener text NOT NULL,
  may_write boolean NOT NULL,
  PRIMARY KEY (login, listener)
);

-- One row: proves that a node seals tokens with the same secret as the others.
CREATE TABLE weir.seal (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  proof bytea NOT NULL
);

ALTER TABLE weir.listener ENABLE ROW LEVEL SECURITY;
ALTER TABLE weir.app_user ENABLE ROW LEVEL SECURITY;
ALTER TABLE weir.change ENABLE ROW LEVEL SECURITY;
ALTER TABLE weir.usage_total ENABLE ROW LEVEL SECURITY;
`;
