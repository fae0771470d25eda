/**
 * The seventh version of the fleet's schema: nodes come in without a lock that any login can hold, and what a login says of its
 * nodes and users is of a size that all others can read.
 */
import { counted } from "./ceilings.ts";

/** Bytes. */
const MOST_NAME = "1024";
const MOST_LABELS = "8192";
const MOST_SAID = "65536";
const MOST_USER = "65536";
/** Of all nodes of a login, because each node reads them all. */
const MOST_LINKS = "16777216";
/** Of a login that is no administrator. */
const MOST_NODES = "1000";

export const BOUNDS = `
-- As in version 1. What is there is read without a lock.
CREATE OR REPLACE FUNCTION weir.prove_seal(mine bytea) RETURNS bytea
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE known bytea;
BEGIN
  SELECT s.proof INTO known FROM weir.seal s;
  IF FOUND THEN RETURN known; END IF;
  INSERT INTO weir.seal (proof) VALUES (mine) ON CONFLICT (is_only) DO UPDATE SET proof = seal.proof RETURNING proof INTO known;
  RETURN known;
END $$;

-- Does a session of this login hold the lock of its node? Any login can take that lock, and then it says nothing.
CREATE FUNCTION weir.holds_lock(key bigint) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  SELECT EXISTS (
    SELECT FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND a.usename = session_user
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND ((l.classid::bigint << 32) | l.objid::bigint) = key)
$$;

-- As in version 2. Two that come at once meet at the row of their node, or at its name.
CREATE OR REPLACE FUNCTION weir.enroll(
  node_id uuid, node_name text, node_address text, node_labels jsonb, node_version text,
  node_epoch bigint, node_instance uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE
  known weir.node%ROWTYPE;
  lock_key bigint := hashtextextended('weir node ' || node_id, 0);
  has_lock boolean;
  fault text;
BEGIN
  IF octet_length(node_name) > ${MOST_NAME} OR octet_length(node_address) > ${MOST_NAME}
     OR octet_length(node_version) > ${MOST_NAME} OR octet_length(node_labels::text) > ${MOST_LABELS} THEN
    RETURN 'the name, the address or the labels of this node are too long';
  END IF;
  SELECT * INTO known FROM weir.node n WHERE n.id = node_id;
  IF known.login <> session_user THEN RETURN format('node %s belongs to another login', known.name); END IF;
  has_lock := pg_try_advisory_lock(lock_key);
  fault := weir.take_node(node_id, node_name, node_epoch, node_instance, NOT has_lock AND weir.holds_lock(lock_key));
  IF fault IS NULL THEN
    INSERT INTO weir.node AS n (id, name, login, address, labels, version, epoch, instance, seen_at, applied,
      connections, draining)
    VALUES (node_id, node_name, session_user, node_address, node_labels, node_version,
      node_epoch, node_instance, clock_timestamp(), '{}', 0, false)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, address = excluded.address, labels = excluded.labels,
      version = excluded.version, epoch = excluded.epoch, instance = excluded.instance, seen_at = excluded.seen_at
    WHERE n.login = session_user AND (n.instance = excluded.instance OR n.epoch < excluded.epoch);
    IF NOT FOUND THEN fault := 'copied'; END IF;
  END IF;
  IF fault IS NOT NULL AND has_lock THEN PERFORM pg_advisory_unlock(lock_key); END IF;
  RETURN fault;
EXCEPTION WHEN unique_violation THEN
  IF has_lock THEN PERFORM pg_advisory_unlock(lock_key); END IF;
  RETURN 'named';
END $$;

-- Why a process of this login may not be this node; null: it may, and its row and its name are free for it.
CREATE FUNCTION weir.take_node(node_id uuid, node_name text, node_epoch bigint, node_instance uuid, is_held boolean) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE known weir.node%ROWTYPE;
BEGIN
  SELECT * INTO known FROM weir.node n WHERE n.id = node_id AND n.login = session_user FOR UPDATE;
  IF FOUND THEN
    IF known.instance <> node_instance AND (known.epoch >= node_epoch
       OR (is_held AND known.seen_at > clock_timestamp() - interval '15 s')) THEN RETURN 'copied'; END IF;
  ELSIF NOT weir.is_admin() AND (SELECT count(*) FROM weir.node n WHERE n.login = session_user) >= ${MOST_NODES} THEN
    RETURN 'this login has ${MOST_NODES} nodes already: forget those that are lost, or make another login';
  END IF;
  IF EXISTS (SELECT FROM weir.node n WHERE n.name = node_name AND n.id <> node_id
             AND (n.login <> session_user OR n.seen_at > clock_timestamp() - interval '15 s')) THEN RETURN 'named'; END IF;
  DELETE FROM weir.node n WHERE n.name = node_name AND n.id <> node_id;
  RETURN NULL;
END $$;

-- As in version 5. Of what is too much for the others to read nothing is kept.
CREATE OR REPLACE FUNCTION weir.beat(
  node_id uuid, node_instance uuid, node_applied jsonb, node_links jsonb, node_stats jsonb, OUT is_draining boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  UPDATE weir.node SET seen_at = clock_timestamp(),
    applied = CASE WHEN octet_length(node_applied::text) > ${MOST_SAID} THEN '{}' ELSE node_applied END,
    stats = CASE WHEN octet_length(node_stats::text) > ${MOST_SAID} THEN '{}' ELSE node_stats END,
    connections = ${counted("node_stats->'connections'", "2147483647")}
  WHERE id = node_id AND instance = node_instance AND login = session_user
  RETURNING draining INTO is_draining;
  IF is_draining IS NOT NULL AND node_links IS NOT NULL THEN
    DELETE FROM weir.link l WHERE l.node_id = beat.node_id;
    INSERT INTO weir.link SELECT beat.node_id, e.key, e.value FROM jsonb_each(node_links) e
    WHERE weir.sees(e.key) AND octet_length(node_links::text) + (
      SELECT coalesce(sum(octet_length(l.links::text)), 0)
      FROM weir.link l JOIN weir.node n ON n.id = l.node_id WHERE n.login = session_user) <= ${MOST_LINKS};
  END IF;
END $$;

-- As in version 6. A row that no weir writes is not read by all nodes of the listener.
CREATE OR REPLACE FUNCTION weir.put_user(tag text, record jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  IF octet_length(record::text) > ${MOST_USER} THEN
    RAISE EXCEPTION 'a user of more than ${MOST_USER} bytes' USING ERRCODE = '54000';
  END IF;
  INSERT INTO weir.app_user AS u VALUES (
    (record->>'id')::uuid, tag, record->>'name', record->>'credential', record->>'flow',
    (record->>'enabled')::boolean, record->'limits', (record->>'generation')::integer,
    decode(record->>'token_hash', 'base64'), decode(record->>'token_sealed', 'base64'),
    (record->>'created_at')::bigint, (record->>'updated_at')::bigint, coalesce(record->'remarks', '{}'))
  ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, credential = excluded.credential, flow = excluded.flow, enabled = excluded.enabled,
    limits = excluded.limits, generation = excluded.generation, token_hash = excluded.token_hash,
    token_sealed = excluded.token_sealed, updated_at = excluded.updated_at, remarks = excluded.remarks
  WHERE u.listener = tag;
  IF NOT FOUND THEN RAISE EXCEPTION 'the id of a user of another listener' USING ERRCODE = '23505'; END IF;
END $$;
`;
