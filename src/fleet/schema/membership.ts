/** The second version of the fleet's schema: what running nodes say of themselves, and to each other. */
export const MEMBERSHIP = `
-- Share links of the node's listeners, by listener and flow, with a place for the credential; no secret in them.
ALTER TABLE weir.node ADD COLUMN links jsonb NOT NULL DEFAULT '{}';
-- Bytes of the last minute, ledger entries that were not acknowledged.
ALTER TABLE weir.node ADD COLUMN stats jsonb NOT NULL DEFAULT '{}';
GRANT SELECT (links, stats) ON weir.node TO weir_admin, weir_node;

-- As in version 1; a lock that a cut-off connection has left behind counts no longer than the beat of its node.
CREATE OR REPLACE FUNCTION weir.enroll(
  node_id uuid, node_name text, node_address text, node_labels jsonb, node_version text,
  node_epoch bigint, node_instance uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE
  known weir.node%ROWTYPE;
  is_other boolean;
  is_locked boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('weir enroll', 0));
  SELECT * INTO known FROM weir.node WHERE id = node_id;
  is_other := FOUND AND known.instance <> node_instance;
  IF known.login <> session_user THEN
    RETURN format('node %s belongs to another login', known.name);
  END IF;
  is_locked := NOT pg_try_advisory_lock(hashtextextended('weir node ' || node_id, 0));
  IF is_other AND (known.epoch >= node_epoch
                   OR (is_locked AND known.seen_at > clock_timestamp() - interval '15 s')) THEN
    IF NOT is_locked THEN PERFORM pg_advisory_unlock(hashtextextended('weir node ' || node_id, 0)); END IF;
    RETURN 'copied';
  END IF;
  IF EXISTS (SELECT FROM weir.node n WHERE n.name = node_name AND n.id <> node_id
             AND (n.login <> session_user OR n.seen_at > clock_timestamp() - interval '15 s')) THEN
    IF NOT is_locked THEN PERFORM pg_advisory_unlock(hashtextextended('weir node ' || node_id, 0)); END IF;
    RETURN 'named';
  END IF;
  DELETE FROM weir.node n WHERE n.name = node_name AND n.id <> node_id;
  INSERT INTO weir.node AS n (id, name, login, address, labels, version, epoch, instance, seen_at, applied,
    connections, draining)
  VALUES (node_id, node_name, session_user, node_address, node_labels, node_version,
    node_epoch, node_instance, clock_timestamp(), '{}', 0, false)
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, address = excluded.address, labels = excluded.labels,
    version = excluded.version, epoch = excluded.epoch, instance = excluded.instance, seen_at = excluded.seen_at;
  RETURN NULL;
END $$;

DROP FUNCTION weir.beat(uuid, uuid, jsonb, integer);
-- The node lives, has applied these revisions, and says more of itself. Null: it is no longer the one that is enrolled.
CREATE FUNCTION weir.beat(
  node_id uuid, node_instance uuid, node_applied jsonb, node_links jsonb, node_stats jsonb, OUT is_draining boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  UPDATE weir.node SET seen_at = clock_timestamp(), applied = node_applied, links = coalesce(node_links, links),
    stats = node_stats, connections = (node_stats->>'connections')::integer
  WHERE id = node_id AND instance = node_instance AND login = session_user
  RETURNING draining INTO is_draining;
END $$;

CREATE OR REPLACE FUNCTION weir.drain(which text, is_draining boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  IF NOT weir.may_write('*') THEN
    RAISE EXCEPTION 'the login % may not change nodes', session_user USING ERRCODE = '42501';
  END IF;
  UPDATE weir.node SET draining = is_draining WHERE name = which;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM pg_notify('weir_node', which);
  RETURN true;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA weir FROM PUBLIC;
GRANT EXECUTE ON FUNCTION weir.beat TO weir_admin, weir_node;
`;
