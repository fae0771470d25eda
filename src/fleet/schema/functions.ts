/** The first version of the fleet's schema: how users change, and how nodes take part. Each call is one transaction. */
export const FUNCTIONS = `
-- A row as it is stored, from JSON with the columns' names; bytea as base64.
CREATE FUNCTION weir.put_user(tag text, record jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  INSERT INTO weir.app_user AS u VALUES (
    (record->>'id')::uuid, tag, record->>'name', record->>'credential', record->>'flow',
    (record->>'enabled')::boolean, record->'limits', (record->>'generation')::integer,
    decode(record->>'token_hash', 'base64'), decode(record->>'token_sealed', 'base64'),
    (record->>'created_at')::bigint, (record->>'updated_at')::bigint)
  ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, credential = excluded.credential, flow = excluded.flow, enabled = excluded.enabled,
    limits = excluded.limits, generation = excluded.generation, token_hash = excluded.token_hash,
    token_sealed = excluded.token_sealed, updated_at = excluded.updated_at
  WHERE u.listener = tag;
  IF NOT FOUND THEN RAISE EXCEPTION 'the id of a user of another listener' USING ERRCODE = '23505'; END IF;
END $$;

-- A change of one user, on top of revision \`expected\`. Not done: the listener has another revision (null: it is not there).
CREATE FUNCTION weir.commit_change(
  tag text, expected bigint, next bigint, changed uuid, what text, record jsonb, by_node text,
  OUT done boolean, OUT present bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  IF NOT weir.may_write(tag) THEN
    RAISE EXCEPTION 'the login % may not change users of listener %', session_user, tag USING ERRCODE = '42501';
  END IF;
  UPDATE weir.listener l SET revision = next WHERE l.tag = commit_change.tag AND revision = expected AND next > expected;
  IF NOT FOUND THEN
    done := false;
    SELECT l.revision INTO present FROM weir.listener l WHERE l.tag = commit_change.tag;
    RETURN;
  END IF;
  INSERT INTO weir.audit (login, node, listener, user_id, user_name, kind) VALUES (
    session_user, by_node, tag, changed,
    coalesce(record->>'name', (SELECT u.name FROM weir.app_user u WHERE u.id = changed)), what);
  IF record IS NULL THEN DELETE FROM weir.app_user u WHERE u.id = changed AND u.listener = tag;
  ELSE PERFORM weir.put_user(tag, record);
  END IF;
  INSERT INTO weir.change (listener, revision, user_id, kind) VALUES (tag, next, changed, what);
  PERFORM pg_notify('weir_change', tag);
  done := true;
  present := next;
END $$;

-- A listener with its first users and what they had moved. False: the fleet has one of this name, nothing was done.
CREATE FUNCTION weir.publish_listener(
  tag text, listener_id text, kind text, first bigint, records jsonb, by_node text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
DECLARE one jsonb;
BEGIN
  IF NOT weir.may_write(tag) THEN
    RAISE EXCEPTION 'the login % may not make listener %', session_user, tag USING ERRCODE = '42501';
  END IF;
  INSERT INTO weir.listener VALUES (tag, listener_id, kind, first) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  FOR one IN SELECT * FROM jsonb_array_elements(records) LOOP
    PERFORM weir.put_user(tag, one);
    INSERT INTO weir.usage_total VALUES (
      (one->>'id')::uuid, (one->>'generation')::integer, (one->>'upload')::bigint, (one->>'download')::bigint);
  END LOOP;
  INSERT INTO weir.change (listener, revision, kind) VALUES (tag, first, 'publish');
  INSERT INTO weir.audit (login, node, listener, kind) VALUES (session_user, by_node, tag, 'publish');
  PERFORM pg_notify('weir_change', tag);
  RETURN true;
END $$;

-- Keeps the first proof for ever and answers with it.
CREATE FUNCTION weir.prove_seal(mine bytea) RETURNS bytea
LANGUAGE sql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
  INSERT INTO weir.seal (proof) VALUES (mine) ON CONFLICT (is_only) DO UPDATE SET proof = seal.proof RETURNING proof
$$;

-- Replaces what a login may.
CREATE FUNCTION weir.allow(who name, listeners text[], writes boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  IF NOT weir.is_admin() THEN
    RAISE EXCEPTION 'only members of weir_admin give rights' USING ERRCODE = '42501';
  END IF;
  DELETE FROM weir.access WHERE login = who;
  INSERT INTO weir.access SELECT who, one, writes FROM (SELECT DISTINCT unnest(listeners) AS one) AS each;
END $$;
`;
