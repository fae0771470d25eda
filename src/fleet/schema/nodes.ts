/** The first version of the fleet's schema: nodes, their beat, and what an operator does with them. */
export const NODES = `
-- Takes part as a node, on the connection on which the node lives. A text says why it may not.
CREATE FUNCTION weir.enroll(
  node_id uuid, node_name text, node_address text, node_labels jsonb, node_version text,
  node_epoch bigint, node_instance uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE known weir.node%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('weir enroll', 0));
  SELECT * INTO known FROM weir.node WHERE id = node_id;
  IF FOUND AND known.login <> session_user THEN
    RETURN format('node %s belongs to another login', known.name);
  END IF;
  IF NOT pg_try_advisory_lock(hashtextextended('weir node ' || node_id, 0)) AND known.instance <> node_instance THEN
    RETURN 'copied';
  END IF;
  IF known.instance <> node_instance AND known.epoch >= node_epoch THEN
    PERFORM pg_advisory_unlock(hashtextextended('weir node ' || node_id, 0));
    RETURN 'copied';
  END IF;
  IF EXISTS (SELECT FROM weir.node n WHERE n.name = node_name AND n.id <> node_id
             AND (n.login <> session_user OR n.seen_at > clock_timestamp() - interval '15 s')) THEN
    PERFORM pg_advisory_unlock(hashtextextended('weir node ' || node_id, 0));
    RETURN 'named';
  END IF;
  DELETE FROM weir.node n WHERE n.name = node_name AND n.id <> node_id;
  INSERT INTO weir.node AS n VALUES (node_id, node_name, session_user, node_address, node_labels, node_version,
    node_epoch, node_instance, clock_timestamp(), '{}', 0, false)
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, address = excluded.address, labels = excluded.labels,
    version = excluded.version, epoch = excluded.epoch, instance = excluded.instance, seen_at = excluded.seen_at;
  RETURN NULL;
END $$;

-- The node lives and has applied these revisions. False: it is no longer the one that is enrolled.
CREATE FUNCTION weir.beat(
  node_id uuid, node_instance uuid, node_applied jsonb, node_connections integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  UPDATE weir.node SET seen_at = clock_timestamp(), applied = node_applied, connections = node_connections
  WHERE id = node_id AND instance = node_instance AND login = session_user;
  RETURN FOUND;
END $$;

-- Draining or not. False: there is no such node.
CREATE FUNCTION weir.drain(which text, is_draining boolean) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  IF NOT weir.may_write('*') THEN
    RAISE EXCEPTION 'the login % may not change nodes', session_user USING ERRCODE = '42501';
  END IF;
  UPDATE weir.node SET draining = is_draining WHERE name = which;
  RETURN FOUND;
END $$;

-- Takes a lost node out: done, live or missing.
CREATE FUNCTION weir.forget(which text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  IF NOT weir.may_write('*') THEN
    RAISE EXCEPTION 'the login % may not change nodes', session_user USING ERRCODE = '42501';
  END IF;
  DELETE FROM weir.node WHERE name = which AND seen_at < clock_timestamp() - interval '60 s';
  IF FOUND THEN RETURN 'done'; END IF;
  RETURN CASE WHEN EXISTS (SELECT FROM weir.node WHERE name = which) THEN 'live' ELSE 'missing' END;
END $$;
`;
