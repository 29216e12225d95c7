/* Allocated objects, lists and trees. */
#include "kernel.h"

struct item {
	u64 key;
	struct bpf_list_node node;
	u64 value;
};

struct leaf {
	u64 key;
	struct bpf_rb_node node;
};

struct counted {
	u64 key;
	struct bpf_refcount count;
	struct bpf_rb_node node;
};

struct other {
	u64 key;
	struct bpf_list_node link;
};

struct plain {
	u64 key;
	u64 value;
};

struct large {
	u64 words[100];
};

#define private(name) __attribute__((section(".data." #name), aligned(8)))

private(a) static struct bpf_spin_lock lock;
private(a) static struct bpf_list_head list __contains(item, node);
private(b) static struct bpf_spin_lock tree_lock;
private(b) static struct bpf_rb_root tree __contains(leaf, node);
private(c) static struct bpf_spin_lock counted_lock;
private(c) static struct bpf_rb_root counted_tree __contains(counted, node);

#define obj_new(type) ((type *)bpf_obj_new_impl(type_id(type), NULL))
#define obj_drop(object) bpf_obj_drop_impl(object, NULL)
#define push(head, node) bpf_list_push_front_impl(head, node, NULL, 0)

static bool less(struct bpf_rb_node *one, const struct bpf_rb_node *other)
{
	return container_of(one, struct leaf, node)->key < container_of(other, struct leaf, node)->key;
}

SEC("tc")
int new_unchecked(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);

	edit(if (!item) return 0;)
	item->key = 1; /* refused new_unchecked: maybe-null | the result of `bpf_obj_new_impl`, which may be null | check it right behind the call */
	obj_drop(item);
	return 0;
}

SEC("tc")
int new_leaks(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);

	if (!item)
		return 0;
	item->key = ctx->len;
	edit(obj_drop(item);)
	return 1;
} /* refused new_leaks: leak | `bpf_obj_new_impl` | bpf_obj_drop, or a list, tree or kptr that takes it */

SEC("tc")
int used_after_drop(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);
	u64 key = 0;

	if (!item)
		return 0;
	edit(key = item->key;)
	obj_drop(item);
	refuse(key = item->key;) /* refused used_after_drop: released | behind `bpf_obj_drop_impl`, which made it invalid | use the object before */
	return key;
}

SEC("tc")
int dropped_twice(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);

	if (!item)
		return 0;
	obj_drop(item);
	refuse(obj_drop(item);) /* refused dropped_twice: released-twice | `bpf_obj_drop_impl` releases what `bpf_obj_drop_impl` already released */
	return 0;
}

SEC("tc")
int push_without_lock(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);

	if (!item)
		return 0;
	edit(spin_lock(&lock);)
	push(&list, &item->node); /* refused push_without_lock: object | uses a bpf_list_head without the lock in the same value or object | take that lock before */
	edit(spin_unlock(&lock);)
	return 0;
}

SEC("tc")
int pop_under_other_lock(struct __sk_buff *ctx)
{
	struct bpf_list_node *node = NULL;

	spin_lock(CHOOSE(&tree_lock, &lock));
	node = bpf_list_pop_front(&list); /* refused pop_under_other_lock: object | `bpf_list_pop_front` uses a bpf_list_head under the lock of another value or object | `bpf_spin_lock` takes the lock */
	spin_unlock(CHOOSE(&tree_lock, &lock));
	if (node)
		obj_drop(container_of(node, struct item, node));
	return 0;
}

SEC("tc")
int popped_leaks(struct __sk_buff *ctx)
{
	struct bpf_list_node *node;

	spin_lock(&lock);
	node = bpf_list_pop_front(&list);
	spin_unlock(&lock);
	refuse((void)node;)
	edit(if (node) obj_drop(container_of(node, struct item, node));)
	return 0; /* refused popped_leaks: leak | `bpf_list_pop_front` | bpf_obj_drop */
}

SEC("tc")
int popped_unchecked(struct __sk_buff *ctx)
{
	struct bpf_list_node *node;

	spin_lock(&lock);
	node = bpf_list_pop_front(&list);
	spin_unlock(&lock);
	edit(if (!node) return 0;)
	obj_drop(container_of(node, struct item, node)); /* refused popped_unchecked: maybe-null | arithmetic on the result of `bpf_list_pop_front`, which may be null | check before the arithmetic */
	return 0;
}

SEC("tc")
int pushed_twice(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);

	if (!item)
		return 0;
	spin_lock(&lock);
	push(&list, &item->node);
	refuse(push(&list, &item->node);) /* refused pushed_twice: object | a list or tree owns since `bpf_list_push_front_impl` | take it out of the list or tree first | gives the object to the list or tree */
	spin_unlock(&lock);
	return 0;
}

SEC("tc")
int used_after_unlock(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);
	u64 key = 0;

	if (!item)
		return 0;
	spin_lock(&lock);
	push(&list, &item->node);
	edit(key = item->key;)
	spin_unlock(&lock);
	refuse(key = item->key;) /* refused used_after_unlock: released | behind `bpf_spin_unlock`, which made it invalid | use it before `bpf_spin_unlock` | bpf_refcount_acquire under the lock */
	return key;
}

SEC("tc")
int dropped_after_push(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);

	if (!item)
		return 0;
	spin_lock(&lock);
	push(&list, &item->node);
	spin_unlock(&lock);
	refuse(obj_drop(item);) /* refused dropped_after_push: released | behind `bpf_spin_unlock` | the lock around every use of a node */
	return 0;
}

SEC("tc")
int member_of_other(struct __sk_buff *ctx)
{
	struct other *other = obj_new(struct other);
	edit(struct item *item = obj_new(struct item);)

	edit(if (other) obj_drop(other);)
	if (!CHOOSE(other, item))
		return 0;
	spin_lock(&lock);
	push(&list, CHOOSE(&other->link, &item->node)); /* refused member_of_other: object | is not the bpf_list_node of struct item | as the tag `contains:` of the list or tree names it */
	spin_unlock(&lock);
	return 0;
}

SEC("tc")
int object_for_node(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);

	if (!item)
		return 0;
	spin_lock(&lock);
	push(&list, CHOOSE((void *)item, &item->node)); /* refused object_for_node: object | no bpf_list_node is where argument 2 of `bpf_list_push_front_impl` points to | pass the address of the member itself */
	spin_unlock(&lock);
	return 0;
}

SEC("tc")
int node_on_stack(struct __sk_buff *ctx)
{
	struct item local = {}, *item = &local;

	edit(item = obj_new(struct item); if (!item) return 0;)
	spin_lock(&lock);
	push(&list, &item->node); /* refused node_on_stack: object | a pointer to the stack | is no object that the program owns | a pointer with a reference */
	spin_unlock(&lock);
	return 0;
}

SEC("tc")
int list_on_stack(struct __sk_buff *ctx)
{
	struct bpf_list_head local = {};
	struct bpf_list_node *node;

	spin_lock(&lock);
	node = bpf_list_pop_front(CHOOSE(&local, &list)); /* refused list_on_stack: object | is neither in the value of a map nor in an allocated object | declare it as a global variable */
	spin_unlock(&lock);
	if (node)
		obj_drop(container_of(node, struct item, node));
	return 0;
}

SEC("tc")
int lock_of_object_read(struct __sk_buff *ctx)
{
	struct item *item = obj_new(struct item);
	u64 value;

	if (!item)
		return 0;
	value = CHOOSE(item->node.opaque[0], item->value); /* refused lock_of_object_read: object | accesses a bpf_list_node in an object | copy other members one by one */
	obj_drop(item);
	return value;
}

SEC("tc")
int beyond_object(struct __sk_buff *ctx)
{
	struct plain *plain = obj_new(struct plain);

	if (!plain)
		return 0;
	(&plain->key)[CHOOSE(2, 1)] = 1; /* refused beyond_object: kernel-object | `struct plain` | the type that the pointer is declared with */
	obj_drop(plain);
	return 0;
}

SEC("tc")
int refcount_absent(struct __sk_buff *ctx)
{
	struct leaf *leaf = obj_new(struct leaf);
	struct counted *counted = obj_new(struct counted);
	void *more;

	if (!leaf || !counted)
		goto out;
	more = bpf_refcount_acquire_impl(CHOOSE((void *)leaf, counted), NULL); /* refused refcount_absent: object | an object without `struct bpf_refcount` | add the member to the structure */
	if (more)
		obj_drop(more);
out:
	if (leaf)
		obj_drop(leaf);
	if (counted)
		obj_drop(counted);
	return 0;
}

SEC("tc")
int added_twice(struct __sk_buff *ctx)
{
	struct leaf *leaf = obj_new(struct leaf);

	if (!leaf)
		return 0;
	spin_lock(&tree_lock);
	bpf_rbtree_add_impl(&tree, &leaf->node, less, NULL, 0);
	refuse(bpf_rbtree_add_impl(&tree, &leaf->node, less, NULL, 0);) /* refused added_twice: object | owns since `bpf_rbtree_add_impl` | take it out of the list or tree first (bpf_list_pop_front, bpf_rbtree_remove) */
	spin_unlock(&tree_lock);
	return 0;
}

SEC("tc")
int first_after_unlock(struct __sk_buff *ctx)
{
	struct bpf_rb_node *node;
	u64 key = 0;

	spin_lock(&tree_lock);
	node = bpf_rbtree_first(&tree);
	edit(if (node) key = container_of(node, struct leaf, node)->key;)
	spin_unlock(&tree_lock);
	refuse(if (node) key = container_of(node, struct leaf, node)->key;) /* refused first_after_unlock: released | behind `bpf_spin_unlock` | the lock around every use of a node */
	return key;
}

static bool less_and_removes(struct bpf_rb_node *one, const struct bpf_rb_node *other)
{
	refuse(bpf_rbtree_remove(&tree, one);) /* refused compare_removes: object | is called in a function that compares nodes of a tree | compare the nodes by their members only */
	return less(one, other);
}

SEC("tc")
int compare_removes(struct __sk_buff *ctx)
{
	struct leaf *leaf = obj_new(struct leaf);

	if (!leaf)
		return 0;
	spin_lock(&tree_lock);
	bpf_rbtree_add_impl(&tree, &leaf->node, less_and_removes, NULL, 0);
	spin_unlock(&tree_lock);
	return 0;
}

SEC("tc")
int removed_leaks(struct __sk_buff *ctx)
{
	struct bpf_rb_node *node;

	spin_lock(&tree_lock);
	node = bpf_rbtree_first(&tree);
	if (node)
		node = bpf_rbtree_remove(&tree, node);
	spin_unlock(&tree_lock);
	edit(if (node) obj_drop(container_of(node, struct leaf, node));)
	return 0; /* refused removed_leaks: leak | `bpf_rbtree_remove` */
}

SEC("tc")
int new_number(struct __sk_buff *ctx)
{
	struct plain *plain = bpf_obj_new_impl(CHOOSE(type_id(u64), type_id(struct plain)), NULL); /* refused new_number: object | cannot allocate the type of argument 1 | pass `bpf_core_type_id_local` of the structure */

	if (plain)
		obj_drop(plain);
	return 0;
}

SEC("syscall")
int percpu_too_large(void *ctx)
{
	void *object = bpf_percpu_obj_new_impl(CHOOSE(type_id(struct large), type_id(struct plain)), NULL); /* refused percpu_too_large: object | cannot allocate the type | one of numbers of at most 512 bytes */

	if (object)
		bpf_percpu_obj_drop_impl(object, NULL);
	return 0;
}

SEC("syscall")
int percpu_dropped_plainly(void *ctx)
{
	struct plain *object = bpf_percpu_obj_new_impl(type_id(struct plain), NULL);

	if (object)
		CHOOSE(bpf_obj_drop_impl, bpf_percpu_obj_drop_impl)(object, NULL); /* refused percpu_dropped_plainly: object | is not of the kind that `bpf_obj_drop_impl` frees | call bpf_percpu_obj_drop instead */
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
