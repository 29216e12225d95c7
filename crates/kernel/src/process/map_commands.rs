//! Commands about maps, in the order of Linux's checks (`kernel/bpf/syscall.c`).

use std::sync::{Arc, Weak};

use btf::fields::FieldRecord;
use btf::{Btf, TypeId};
use program::creation::MapCreator;
use program::{MapDef, MapParams};
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, Result};
use vm::BpfCall;

use super::attributes::{Attributes, TOKEN_FD, by_id, element, map_create};
use super::{Descriptor, Process};
use crate::maps::{Map, ValueLayout};

/// Bytes of the hash of the only program that may use a map.
const HASH_SIZE: u32 = 32;

impl Process {
    /// `BPF_MAP_CREATE`.
    pub(super) fn create_map(&self, attributes: &Attributes) -> Result<u32> {
        use map_create as at;
        attributes.check_end(at::END)?;
        let params = MapParams {
            map_type: attributes.u32(at::MAP_TYPE),
            key_size: attributes.u32(at::KEY_SIZE),
            value_size: attributes.u32(at::VALUE_SIZE),
            max_entries: attributes.u32(at::MAX_ENTRIES),
            flags: MapFlags(attributes.u32(at::FLAGS)),
            extra: attributes.u64(at::EXTRA),
            numa_node: attributes.u32(at::NUMA_NODE),
            key_type: TypeId(attributes.u32(at::KEY_TYPE)),
            value_type: TypeId(attributes.u32(at::VALUE_TYPE)),
        };
        let (key_type, value_type) = (params.key_type, params.value_type);
        if attributes.u32(at::VMLINUX_VALUE_TYPE) != 0 {
            let is_struct_ops = params.kind() == Some(MapKind::StructOps);
            if !is_struct_ops || !key_type.is_void() || !value_type.is_void() {
                return Err(Errno::EINVAL);
            }
        } else if !key_type.is_void() && value_type.is_void() {
            return Err(Errno::EINVAL);
        }
        // What the types say is known when they are found, behind the checks of a plain map.
        let plain = ValueLayout::plain(params.value_size as usize);
        let descriptor = attributes.u32(at::INNER_MAP_FD);
        let inner = self.table().map(descriptor);
        let is_of_maps = params.kind().is_some_and(MapKind::is_map_of_maps);
        let template = match inner {
            Ok(inner) if is_of_maps => Some(inner),
            Err(Errno::EINVAL) if is_of_maps => return Err(Errno::EINVAL),
            _ => None,
        };
        let template = template.as_ref().map(|inner| &*inner.map);
        let map = Map::create_with(&params, plain, &self.host, template)?;
        if attributes.u32(at::IFINDEX) != 0 {
            // No device takes maps.
            return Err(Errno::EINVAL);
        }
        let name = attributes.name(at::NAME)?;
        let has_types = !key_type.is_void() || !value_type.is_void();
        let types = match has_types {
            true => Some(self.table().types(attributes.u32(at::BTF_FD))?),
            false => None,
        };
        let mut def = MapDef::new(name, params);
        let fields = match &types {
            Some(types) => {
                def.inner = template.map(|inner| Arc::new(MapDef::new("", *inner.params())));
                Some(self.typed_fields(&def, types)?)
            }
            None => None,
        };
        let has_hash = attributes.u64(at::EXCLUSIVE_HASH) != 0;
        let hash_size = attributes.u32(at::EXCLUSIVE_HASH_SIZE);
        if hash_size != if has_hash { HASH_SIZE } else { 0 } {
            return Err(Errno::EINVAL);
        }
        let map = match &fields {
            Some(fields) => {
                let layout = ValueLayout::with_fields(params.value_size as usize, fields);
                Map::create_with(&params, layout, &self.host, template)?
            }
            None => map,
        };
        self.table().open_map(Arc::new(map), types)
    }

    /// The special fields of the values of a map with these types.
    fn typed_fields(&self, def: &MapDef, types: &Btf<'_>) -> Result<FieldRecord> {
        let registry = self.kernel.registry().ok_or(Errno::ENOTSUPP)?;
        let creator = MapCreator::new(&self.kernel, registry);
        let created = creator.create_described(def, types);
        created
            .map(|map| map.fields)
            .map_err(|refusal| refusal.errno)
    }

    /// `BPF_MAP_UPDATE_ELEM`.
    pub(super) fn update_map(&self, attributes: &Attributes, call: &BpfCall<'_>) -> Result<u32> {
        attributes.check_end(element::END)?;
        let table = self.table();
        let map = table.map(attributes.u32(element::MAP_FD))?;
        let flags = attributes.u64(element::FLAGS);
        map.map.check_update(flags)?;
        let key = read_key(&map.map, attributes.u64(element::KEY), call)?;
        let mut value = vec![0; map.map.value_len()];
        if !(call.read)(attributes.u64(element::VALUE), &mut value) {
            return Err(Errno::EFAULT);
        }
        map.map.update_with(&key, &value, flags, &*table)?;
        Ok(0)
    }

    /// `BPF_MAP_DELETE_ELEM`.
    pub(super) fn delete_from_map(
        &self,
        attributes: &Attributes,
        call: &BpfCall<'_>,
    ) -> Result<u32> {
        attributes.check_end(element::END_OF_DELETE)?;
        let table = self.table();
        let map = table.map(attributes.u32(element::MAP_FD))?;
        map.map.check_update(0)?;
        let key = read_key(&map.map, attributes.u64(element::KEY), call)?;
        map.map.delete_with(&key, &*table)?;
        Ok(0)
    }

    /// `BPF_MAP_FREEZE`.
    pub(super) fn freeze_map(&self, attributes: &Attributes) -> Result<u32> {
        attributes.check_end(element::END_OF_FREEZE)?;
        let map = self.table().map(attributes.u32(element::MAP_FD))?;
        map.map.freeze()?;
        Ok(0)
    }

    /// `BPF_MAP_GET_FD_BY_ID`.
    pub(super) fn open_map_of_id(&self, attributes: &Attributes) -> Result<u32> {
        attributes.check_end(by_id::END)?;
        let access = MapFlags::RDONLY.0 | MapFlags::WRONLY.0;
        let flags = attributes.u32(by_id::OPEN_FLAGS);
        Errno::EINVAL.when(flags & !(access | TOKEN_FD) != 0)?;
        Errno::EBADF.when(flags & TOKEN_FD != 0)?;
        let mut table = self.table();
        let map = table.maps.get(&attributes.u32(by_id::ID));
        let map = map.and_then(Weak::upgrade).ok_or(Errno::ENOENT)?;
        Errno::EINVAL.when(flags & access == access)?;
        table.open(Descriptor::Map(map))
    }
}

/// The key at an address. A map without keys takes a null pointer only.
fn read_key(map: &Map, address: u64, call: &BpfCall<'_>) -> Result<Vec<u8>> {
    let mut key = vec![0; map.params().key_size as usize];
    match key.is_empty() {
        true if address != 0 => Err(Errno::EINVAL),
        true => Ok(key),
        false if (call.read)(address, &mut key) => Ok(key),
        false => Err(Errno::EFAULT),
    }
}
